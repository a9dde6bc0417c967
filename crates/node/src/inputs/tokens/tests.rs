//! Tests of when tokens are asked for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::inputs::testing::{pod, token_api};

#[tokio::test(start_paused = true)]
async fn a_token_is_renewed_at_four_fifths_of_its_life() {
    let away = Arc::new(AtomicBool::new(false));
    let tokens = Tokens::new(token_api(Arc::default(), away.clone()));
    let pod = pod(json!({}));
    let wanted = Wanted {
        audience: "",
        seconds: 1000,
    };
    let get = async || tokens.get(&pod, &wanted).await;
    let pass = |seconds| tokio::time::advance(Duration::from_secs(seconds));
    assert_eq!(get().await.as_deref(), Ok("t1"));
    pass(790).await;
    assert_eq!(get().await.as_deref(), Ok("t1"));
    pass(11).await;
    assert_eq!(get().await.as_deref(), Ok("t2"));
    // While the server is away, the old one goes on as long as it lives.
    away.store(true, Ordering::SeqCst);
    pass(900).await;
    assert_eq!(get().await.as_deref(), Ok("t2"));
    assert_eq!(get().await.as_deref(), Ok("t2"), "not asked again at once");
    let renewal = tokens.renewal("u1").unwrap();
    assert!(renewal <= Instant::now() + RETRY, "{renewal:?}");
    pass(101).await;
    assert_eq!(get().await, Err("failed to fetch token: away".into()));
    away.store(false, Ordering::SeqCst);
    assert_eq!(get().await.as_deref(), Ok("t5"));
    tokens.forget("u1");
    assert!(tokens.renewal("u1").is_none());
}
