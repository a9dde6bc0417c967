//! The certificates that the server shows agents, and the ones that it trusts, are replaced while it runs.

use super::agent::Agent;
use super::fixture::Fixture;

#[tokio::test]
async fn an_agent_of_a_new_authority_is_reached_when_the_old_one_is_retired() {
    let fixture = Fixture::new().await;
    let certificates = &fixture.server.certificates;
    certificates.rotate_authority().unwrap();
    certificates.retire_authorities().unwrap();
    // It trusts the new one alone.
    let authority = certificates.authority.get();
    let agent = Agent::start("m", &authority.cert_pem, &authority.key_pem).await;
    fixture.node("m", agent.address.port()).await;
    let reached = fixture.get("/api/v1/nodes/m/proxy/healthz").await;
    assert_eq!(reached.code, 200, "{}", reached.text());
}
