//! The pipeline's contestant: a ConfigMap and a condition for each Widget.
//!
//! The child is applied and watched (`owns`); the status is patched only when the condition differs. As many objects at
//! the same time as ours. As in kube-rs's guide, an unchanged object is reconciled again after a while: each hour, or as
//! often as the bench asks for.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;
use kube::api::{ObjectMeta, Patch, PatchParams};
use kube::runtime::controller::{Action, Config, Controller};
use kube::runtime::watcher;
use kube::{Api, Client, Resource, ResourceExt};
use serde_json::json;

use crate::tally::Tally;
use crate::widget::Widget;

const MANAGER: &str = "widget-controller";
const HOUR: Duration = Duration::from_secs(3600);
const AFTER_ERROR: Duration = Duration::from_secs(1);

struct Context {
    client: Client,
    tally: Tally,
    period: Duration,
}

pub async fn run(client: Client, tally: Tally) {
    let seconds = std::env::var("BENCH_RESYNC_SECONDS").ok().and_then(|text| text.parse().ok());
    let period = seconds.map_or(HOUR, Duration::from_secs_f64);
    let widgets = Api::<Widget>::all(client.clone());
    let config_maps = Api::<ConfigMap>::all(client.clone());
    Controller::new(widgets, watcher::Config::default())
        .owns(config_maps, watcher::Config::default())
        .with_config(Config::default().concurrency(10))
        .shutdown_on_signal()
        .run(reconcile, error_policy, Arc::new(Context { client, tally, period }))
        .for_each(|_| std::future::ready(()))
        .await;
}

async fn reconcile(widget: Arc<Widget>, context: Arc<Context>) -> kube::Result<Action> {
    let (name, namespace) = (widget.name_any(), widget.namespace().unwrap_or_default());
    context.tally.handled(&name);
    let child = config_map_for(&widget);
    Api::<ConfigMap>::namespaced(context.client.clone(), &namespace)
        .patch(&name, &PatchParams::apply(MANAGER).force(), &Patch::Apply(child))
        .await?;
    let known = ready(&widget);
    let wanted = condition_for(&widget, known);
    if known != Some(&wanted) {
        Api::<Widget>::namespaced(context.client.clone(), &namespace)
            .patch_status(
                &name,
                &PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() },
                &Patch::Merge(json!({"status": {"conditions": [wanted]}})),
            )
            .await?;
    }
    Ok(Action::requeue(context.period))
}

fn error_policy(_: Arc<Widget>, _: &kube::Error, _: Arc<Context>) -> Action {
    Action::requeue(AFTER_ERROR)
}

fn config_map_for(widget: &Widget) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            name: widget.metadata.name.clone(),
            namespace: widget.metadata.namespace.clone(),
            owner_references: widget.controller_owner_ref(&()).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        data: Some([("size".to_owned(), widget.spec.size.to_string())].into()),
        ..ConfigMap::default()
    }
}

fn ready(widget: &Widget) -> Option<&Condition> {
    widget.status.as_ref()?.conditions.iter().find(|known| known.type_ == "Ready")
}

/// The condition as it should be; the time of the last transition stays while the status does not change.
fn condition_for(widget: &Widget, known: Option<&Condition>) -> Condition {
    Condition {
        type_: "Ready".to_owned(),
        status: "True".to_owned(),
        reason: "Published".to_owned(),
        message: format!("size {} is published", widget.spec.size),
        observed_generation: widget.metadata.generation,
        last_transition_time: known
            .filter(|known| known.status == "True")
            .map_or_else(|| Time(Timestamp::now()), |known| known.last_transition_time.clone()),
    }
}
