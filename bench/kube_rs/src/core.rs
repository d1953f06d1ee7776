//! The core's contestant: a reconciler that only notes the object.

use std::convert::Infallible;
use std::sync::Arc;

use futures::StreamExt;
use kube::runtime::controller::{Action, Controller};
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt};

use crate::tally::Tally;
use crate::widget::Widget;

pub async fn run(client: Client, tally: Tally) {
    Controller::new(Api::<Widget>::all(client), watcher::Config::default())
        .shutdown_on_signal()
        .run(reconcile, error_policy, Arc::new(tally))
        .for_each(|_| std::future::ready(()))
        .await;
}

async fn reconcile(widget: Arc<Widget>, tally: Arc<Tally>) -> Result<Action, Infallible> {
    tally.note(&widget.name_any(), widget.spec.size);
    Ok(Action::await_change())
}

fn error_policy(_: Arc<Widget>, error: &Infallible, _: Arc<Tally>) -> Action {
    match *error {}
}
