//! Runs the cases of the environment variable CASES, and prints one line of JSON for each: its answer, or its error.
use rmcp::{ServiceExt, model::CallToolRequestParams, transport::StreamableHttpClientTransport};
use serde_json::{Value, json};
use std::{env, error::Error};

/// The server answers after as many seconds.
const WAIT: i64 = -600;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let cases: Vec<Value> = serde_json::from_str(&env::var("CASES")?)?;
    for case in cases {
        let url = case["url"].as_str().unwrap_or_default();
        let a = if case["do"] == "wait_http" { WAIT } else { 2 };
        let line = match add(url, a).await {
            Ok(answer) => json!({ "case": case["name"], "answer": answer }),
            Err(error) => {
                let text = error.to_string();
                let fields = format!("{error:?}");
                json!({ "case": case["name"], "error": { "type": "Error", "text": text, "fields": fields } })
            }
        };
        println!("{line}");
    }
    Ok(())
}

/// Lists the tools of a server and calls one of them.
async fn add(url: &str, a: i64) -> Result<String, Box<dyn Error>> {
    let client = ().serve(StreamableHttpClientTransport::from_uri(url)).await?;
    let listed = client.list_all_tools().await?;
    let arguments = json!({ "a": a, "b": 40 }).as_object().cloned().unwrap_or_default();
    let asked = CallToolRequestParams::new("add").with_arguments(arguments);
    let result = client.call_tool(asked).await?;
    let text = serde_json::to_value(&result)?["content"][0]["text"].as_str().unwrap_or_default().to_owned();
    client.cancel().await?;
    Ok(format!("{} tools, {text}", listed.len()))
}
