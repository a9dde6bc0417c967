//! When tokens are requested.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::inputs::tests::fixture::{pod, token_api};

#[tokio::test(start_paused = true)]
async fn a_token_is_renewed_after_80_percent_of_its_lifetime() {
    let unavailable = Arc::new(AtomicBool::new(false));
    let tokens = Tokens::new(token_api(Arc::default(), unavailable.clone()));
    let pod = pod(json!({}));
    let spec = TokenSpec {
        audience: "",
        seconds: 1000,
    };
    let get = async || {
        tokens
            .get(&pod, &spec)
            .await
            .map_err(|error| error.to_string())
    };
    let pass = |seconds| tokio::time::advance(Duration::from_secs(seconds));
    assert_eq!(get().await.as_deref(), Ok("t1"));
    pass(790).await;
    assert_eq!(get().await.as_deref(), Ok("t1"));
    pass(11).await;
    assert_eq!(get().await.as_deref(), Ok("t2"));
    // While the API server is unavailable, the old token is used until it expires.
    unavailable.store(true, Ordering::SeqCst);
    pass(900).await;
    assert_eq!(get().await.as_deref(), Ok("t2"));
    assert_eq!(
        get().await.as_deref(),
        Ok("t2"),
        "not requested again at once"
    );
    let renewal = tokens.renewal("u1").unwrap();
    assert!(
        renewal <= Instant::now() + Duration::from_secs(10),
        "{renewal:?}"
    );
    pass(101).await;
    assert_eq!(get().await, Err("failed to fetch token: away".into()));
    unavailable.store(false, Ordering::SeqCst);
    assert_eq!(get().await.as_deref(), Ok("t5"));
    tokens.forget("u1");
    assert!(tokens.renewal("u1").is_none());
}
