//! kube-rs's contestants, written as its guide says: `contestant core` and `contestant pipeline`.
//!
//! Stock settings. The log goes to standard output by the usual subscriber.

mod core;
mod pipeline;
mod tally;
mod widget;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tracing_subscriber::fmt::init();
    let client = kube::Client::try_default().await?;
    let tally = tally::Tally::from_environment()?;
    match std::env::args().nth(1).as_deref() {
        Some("core") => core::run(client, tally).await,
        Some("pipeline") => pipeline::run(client, tally).await,
        _ => return Err("use contestant core or contestant pipeline".into()),
    }
    Ok(())
}
