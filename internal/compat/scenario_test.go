package compat

import (
	"fmt"
	"time"
)

const (
	approve = `{"verb":"approve"}`
	accept  = `{"action":"approve"}`
	revise  = `{"action":"revise","note":"shorter"}`
)

// freshScenario fills an empty installation.
func freshScenario(r *recorder) {
	r.describe()
	r.reviewRun()
	r.problems()
	r.collaboration()
	r.grants()
	r.endings()
	r.waiting()
	r.reports()
}

// describe reads what does not depend on runs.
func (r *recorder) describe() {
	r.do("health", "", "GET", "/healthz", "")
	r.do("ready", "", "GET", "/readyz", "")
	r.get("me-key", "ana", "/me")
	r.get("me-session", browser, "/me")
	r.get("me-no-credentials", "", "/me")
	r.wantStatus(401)
	r.get("me-revoked-key", "revoked", "/me")
	r.wantStatus(401)
	r.get("graphs", "robot", "/graphs")
	r.get("graph", "robot", "/graphs/inproc:everything")
	r.wantStatus(200)
	r.get("graph-unknown", "robot", "/graphs/inproc:unknown")
	r.wantStatus(404)
	r.get("kinds", "robot", "/kinds")
	r.get("routes", "olga", "/routes")
	p := r.get("policies", "olga", "/policies")
	r.get("policy-text", "olga", "/policies/"+r.text(p, "digest"))
	r.post("policy-explain-ask", "olga", "/policies/explain", `{"tool":"transfer","args":{"to":"shop","cents":5000},"graph":"inproc:transfer","requester":"robot"}`)
	r.post("policy-explain-allow", "olga", "/policies/explain", `{"tool":"transfer","args":{"to":"shop","cents":1}}`)
	r.post("policy-explain-deny", "olga", "/policies/explain", `{"tool":"transfer","args":{"to":"blocked","cents":5000}}`)
	r.get("runs-empty", "olga", "/runs")
	r.get("requests-empty", "olga", "/requests")
	r.get("answers-empty", "robot", "/answers")
}

// reviewRun takes a run from start to completion by the call ai/chat.
func (r *recorder) reviewRun() {
	const start = `{"graphId":"inproc:review","stateKey":"review-1","input":{"topic":"tea"}}`
	r.post("start", "robot", "/ai/chat", start)
	r.wantStatus(200)
	r.post("start-repeated", "robot", "/ai/chat", start)
	r.post("start-other-input", "robot", "/ai/chat", `{"graphId":"inproc:review","stateKey":"review-1","input":{"topic":"coffee"}}`)
	r.wantStatus(409)
	q := r.only("review-1")
	r.get("requests", "ana", "/requests")
	r.get("request", "ana", "/requests/"+q.id)
	r.post("resume-wrong-answer", "ana", "/ai/chat", `{"stateKey":"review-1","resumeId":"wrong","resumeValue":"approve"}`)
	r.wantStatus(400)
	r.post("resume-changed-content", "ana", "/ai/chat", fmt.Sprintf(`{"stateKey":"review-1","resumeId":"shown","resumeTargets":{%q:{"action":"approve"}},"shown":{%q:"other"}}`, q.id, q.id))
	r.wantStatus(412)
	r.post("resume-value", "ana", "/ai/chat", `{"stateKey":"review-1","resumeId":"r1","resumeValue":`+revise+`}`)
	r.wantStatus(200)
	r.post("resume-repeated", "ana", "/ai/chat", `{"stateKey":"review-1","resumeId":"r1","resumeValue":`+revise+`}`)
	r.post("resume-id-reused", "ana", "/ai/chat", `{"stateKey":"review-1","resumeId":"r1","resumeValue":`+accept+`}`)
	r.wantStatus(422)
	next := r.only("review-1")
	r.decide("decide", "ana", next, "r2", accept)
	r.decide("decide-repeated", "ana", next, "r2", accept)
	r.decide("decide-too-late", "bob", next, "r3", accept)
	r.wantStatus(409)
	r.post("resume-not-active", "ana", "/ai/chat", `{"stateKey":"review-1","resumeId":"r4","resumeValue":`+accept+`}`)
	r.wantStatus(409)
	r.get("request-decided", "ana", "/requests/"+next.id)
	r.get("run", "robot", "/runs/review-1")
	r.get("run-graph", "robot", "/runs/review-1/graph")
	r.get("run-events", "robot", "/runs/review-1/events", "Accept", "text/event-stream")
	r.post("start-async", "robot", "/ai/chat", `{"graphId":"inproc:review","stateKey":"review-2","input":{"topic":"async"}}`, "Prefer", "respond-async")
	r.wantStatus(202)
	old := r.only("review-2")
	r.post("start-supersede", "robot", "/ai/chat", `{"graphId":"inproc:review","stateKey":"review-2","input":{"topic":"other"},"supersede":true}`)
	r.decide("decide-superseded", "ana", old, "r5", accept)
	r.wantStatus(410)
	r.anyOrder("").post("resume-stream", "ana", "/ai/chat", `{"stateKey":"review-2","resumeId":"r6","resumeValue":`+accept+`}`, "Accept", "text/event-stream")
	r.wantStatus(200)
}

// problems are requests that are refused.
func (r *recorder) problems() {
	r.post("malformed-json", "robot", "/ai/chat", `{`)
	r.wantStatus(400)
	r.post("unknown-field", "robot", "/ai/chat", `{"graphId":"inproc:review","unknown":1}`)
	r.wantStatus(400)
	r.post("start-unknown-graph", "robot", "/ai/chat", `{"graphId":"inproc:unknown","input":{}}`)
	r.wantStatus(404)
	r.post("start-forbidden", "ana", "/ai/chat", `{"graphId":"inproc:review","input":{}}`)
	r.wantStatus(403)
	r.post("start-no-credentials", "", "/ai/chat", `{"graphId":"inproc:review","input":{}}`)
	r.wantStatus(401)
	r.get("run-unknown", "robot", "/runs/unknown")
	r.wantStatus(404)
	r.get("run-of-other-account", "other", "/runs/review-1")
	r.wantStatus(404)
	r.get("request-unknown", "ana", "/requests/int_unknown")
	r.wantStatus(404)
	r.post("claim-unknown", "ana", "/requests/int_unknown/claim", `{}`)
	r.wantStatus(404)
	r.post("revoke-unknown-grant", "ana", "/grants/unknown/revoke", "")
	r.wantStatus(404)
	r.get("policy-unknown", "olga", "/policies/"+fmt.Sprintf("%064d", 0))
	r.wantStatus(404)
	r.get("runs-unknown-status", "robot", "/runs?status=unknown")
	r.wantStatus(400)
	r.get("runs-invalid-cursor", "robot", "/runs?cursor=x")
	r.wantStatus(400)
	r.get("unknown-path", "robot", "/unknown")
	r.wantStatus(404)
	r.do("method-not-allowed", "robot", "DELETE", "/api/v1/runs", "")
	r.wantStatus(405)
	r.post("unsupported-media-type", "robot", "/ai/chat", `{}`, "Content-Type", "text/plain")
	r.wantStatus(415)
	r.get("audit-forbidden", "robot", "/audit")
	r.wantStatus(403)
	r.post("retry-not-parked", "root", "/runs/review-1/retry", "")
	r.wantStatus(409)
	r.post("cancel-completed", "root", "/runs/review-1/cancel", "")
}

// collaboration is what people do with a request besides deciding it, and a decision with edits.
func (r *recorder) collaboration() {
	r.start("start-transfer", "inproc:transfer", "transfer-1", `{"money":{"to":"shop","cents":5000}}`)
	q := r.only("transfer-1")
	act := func(name, as, act, body string, headers ...string) {
		r.post(name, as, "/requests/"+q.id+"/"+act, body, headers...)
	}
	act("view", "ana", "view", fmt.Sprintf(`{"shown":%q}`, q.shown))
	act("claim", "ana", "claim", `{}`)
	act("claim-twice", "bob", "claim", `{}`)
	act("claim-not-member", "mallory", "claim", `{}`)
	r.wantStatus(403)
	act("comment", "bob", "comment", `{"text":"Is the amount correct?"}`, "Idempotency-Key", "comment-1")
	act("comment-repeated", "bob", "comment", `{"text":"Is the amount correct?"}`, "Idempotency-Key", "comment-1")
	act("comment-key-reused", "bob", "comment", `{"text":"Another text"}`, "Idempotency-Key", "comment-1")
	r.wantStatus(422)
	act("comment-empty", "bob", "comment", `{}`)
	r.wantStatus(400)
	act("question", "eve", "question", `{"text":"Which shop?"}`)
	r.wantStatus(200)
	time.Sleep(5 * time.Second) // the run replies
	act("reply-unknown-question", "robot", "reply", `{"question":7,"text":"?"}`)
	r.wantStatus(409)
	act("delegate", "bob", "delegate", `{"to":"ana"}`)
	r.wantStatus(200)
	act("delegate-not-member", "bob", "delegate", `{"to":"mallory"}`)
	r.wantStatus(403)
	act("snooze", "bob", "snooze", fmt.Sprintf(`{"until":%q}`, "2000-01-01T00:30:00Z"))
	r.wantStatus(200)
	act("snooze-no-time", "bob", "snooze", `{}`)
	r.wantStatus(400)
	act("extend-too-far", "ana", "extend", `{"until":"2000-01-01T20:00:00Z"}`)
	act("release", "ana", "release", `{}`)
	r.wantStatus(200)
	act("escalate", "bob", "escalate", `{"text":"urgent"}`)
	r.get("request-detail", "eve", "/requests/"+q.id)
	r.decide("decide-not-member", "mallory", q, "t0", approve)
	r.wantStatus(403)
	r.decide("decide-wrong-answer", "ana", q, "t0", `{"verb":"unknown"}`)
	r.wantStatus(400)
	r.decide("vote-with-edit", "ana", q, "t1", `{"verb":"approve","args":{"to":"shop","cents":4000}}`)
	r.wantStatus(200)
	q.shown = r.text(r.get("request-after-edit", "eve", "/requests/"+q.id), "shown")
	r.decide("vote-final", "eve", q, "t2", approve)
	r.wantStatus(200)
	r.get("request-edited", "olga", "/requests/"+q.id)
	r.get("run-with-effect", "robot", "/runs/transfer-1")
	r.get("run-with-effect-events", "robot", "/runs/transfer-1/events")
}

// grants makes a grant that is used and revoked, and one that stays.
func (r *recorder) grants() {
	for i, key := range []string{"transfer-2", "transfer-3"} {
		name := fmt.Sprintf("grant-%d-", i+1)
		r.start(name+"start", "inproc:transfer", key, fmt.Sprintf(`{"money":{"to":"grant-%d","cents":700}}`, i+1))
		q := r.only(key)
		r.decide(name+"decide", "eve", q, "g-"+key, approve)
		g := r.post(name+"remember", "eve", "/requests/"+q.id+"/remember", `{"seconds":7200,"uses":3,"budget":{"of":"/cents","max":2000},"relax":{"/cents":{"op":"any"}}}`, "Idempotency-Key", name)
		r.wantStatus(200)
		r.start(name+"used", "inproc:transfer", key+"-again", fmt.Sprintf(`{"money":{"to":"grant-%d","cents":600}}`, i+1))
		r.anyOrder("items").get(name+"list", "olga", "/grants")
		if i == 0 {
			r.post(name+"remember-invalid", "eve", "/requests/"+q.id+"/remember", `{"seconds":0,"uses":1}`)
			r.wantStatus(400)
			r.post(name+"revoke", "bob", "/grants/"+r.text(g, "id")+"/revoke", "")
			r.wantStatus(204)
		}
	}
}

// endings are runs that end in each other way.
func (r *recorder) endings() {
	r.start("start-allowed", "inproc:transfer", "allowed", `{"money":{"to":"shop","cents":50}}`)
	r.start("start-denied", "inproc:transfer", "denied", `{"money":{"to":"blocked","cents":5000}}`)
	r.start("start-failing", "inproc:failing", "failing", `{"topic":"x"}`)
	r.get("run-failed", "robot", "/runs/failing")

	r.start("start-to-reject", "inproc:transfer", "rejected", `{"money":{"to":"shop","cents":9000}}`)
	r.decide("reject", "ana", r.only("rejected"), "n1", `{"verb":"reject","reason":"too much"}`)

	r.start("start-to-abandon", "inproc:review", "abandoned", `{"topic":"x"}`)
	q := r.only("abandoned")
	r.post("abandon", "ana", "/requests/"+q.id+"/escape", `{"text":"not needed"}`)
	r.wantStatus(200)
	r.post("abandon-again", "bob", "/requests/"+q.id+"/escape", `{}`)
	r.get("run-abandoned", "robot", "/runs/abandoned")

	r.start("start-to-cancel", "inproc:review", "cancelled", `{"topic":"x"}`)
	q = r.only("cancelled")
	r.post("cancel", "robot", "/runs/cancelled/cancel", "")
	r.wantStatus(204)
	r.get("request-withdrawn", "olga", "/requests/"+q.id)
	r.decide("decide-withdrawn", "ana", q, "w1", accept)

	r.start("start-to-expire", "inproc:short", "expired", `{"to":"shop","cents":1}`)
	q = r.only("expired")
	time.Sleep(70 * time.Second)
	r.get("request-expired", "olga", "/requests/"+q.id)
	r.decide("decide-expired", "ana", q, "x1", approve)
	r.wantStatus(410)
	r.get("run-expired", "robot", "/runs/expired")

	r.start("start-doubt", "unreliable:doubt", "doubt-settled", `{"money":{"to":"shop","cents":60}}`)
	q = r.only("doubt-settled")
	r.get("request-in-doubt", "ana", "/requests/"+q.id)
	r.decide("settle-doubt", "ana", q, "d1", `{"happened":true,"receipt":"receipt by telephone","reason":"asked the shop"}`)

	r.post("external-ask", "robot", "/requests", `{"stateKey":"external-1","kind":"question","data":{"text":"Which colour?"},"answerSchema":{"type":"string","enum":["red","blue"]}}`)
	r.wantStatus(200)
	q = r.only("external-1")
	r.decide("external-wrong-answer", "ana", q, "e0", `"green"`)
	r.wantStatus(400)
	r.decide("external-decide", "ana", q, "e1", `"red"`)
	r.get("answers", "robot", "/answers")
}

// waiting leaves runs that wait, in each way, for storedScenario.
func (r *recorder) waiting() {
	r.start("start-waiting-review", "inproc:review", "waiting-review", `{"topic":"waiting"}`)
	q := r.only("waiting-review")
	r.post("waiting-claim", "bob", "/requests/"+q.id+"/claim", `{}`)
	r.post("waiting-comment", "ana", "/requests/"+q.id+"/comment", `{"text":"Wait for the lawyer."}`)
	r.post("waiting-question", "ana", "/requests/"+q.id+"/question", `{"text":"Who wrote it?"}`)
	r.post("waiting-extend", "ana", "/requests/"+q.id+"/extend", `{"until":"2000-01-03T00:00:00Z"}`)
	r.wantStatus(200)
	r.post("waiting-snooze", "bob", "/requests/"+q.id+"/snooze", `{"until":"2000-01-01T02:00:00Z"}`)

	r.start("start-waiting-transfer", "inproc:transfer", "waiting-transfer", `{"money":{"to":"shop","cents":8000}}`)
	q = r.only("waiting-transfer")
	r.post("waiting-delegate", "ana", "/requests/"+q.id+"/delegate", `{"to":"bob"}`)
	r.decide("waiting-vote", "bob", q, "v1", approve)
	r.wantStatus(200)

	r.start("start-waiting-everything", "inproc:everything", "waiting-everything", `{}`)
	open := r.open("waiting-everything")
	r.get("run-graph-waiting", "robot", "/runs/waiting-everything/graph")
	for _, q := range sorted(open) {
		if q.address == workAddress {
			r.decide("waiting-everything-first", "ana", q.openRequest, "v2", `"first"`)
			r.wantStatus(200)
		}
	}
	r.start("start-waiting-clerk", "inproc:clerk", "waiting-clerk", `{"query":"Book a trip to Paris."}`)
	r.start("start-waiting-doubt", "unreliable:doubt", "waiting-doubt", `{"money":{"to":"bank","cents":80}}`)
	r.post("waiting-external", "robot", "/requests", `{"stateKey":"waiting-external","kind":"question","data":{"text":"Which size?"},"answerSchema":{"type":"string"}}`)
	r.start("start-parked", "unreliable:jammed", "parked", `{"topic":"poster"}`, "Prefer", "respond-async")
	time.Sleep(30 * time.Second)
	r.get("run-parked", "root", "/runs/parked")
}

// reports reads lists and reports.
func (r *recorder) reports() {
	time.Sleep(2 * time.Minute) // the audit log is signed
	page := r.get("runs-page-1", "olga", "/runs?limit=5")
	r.get("runs-page-2", "olga", "/runs?limit=5&cursor="+r.text(page, "next"))
	r.get("runs-by-status", "olga", "/runs?status=waiting,parked")
	r.get("runs-by-graph", "olga", "/runs?graphId=inproc:transfer")
	r.anyOrder("items").get("requests-open", "ana", "/requests?state=pending")
	r.get("requests-decided", "olga", "/requests?state=decided&limit=3")
	r.get("requests-by-kind", "olga", "/requests?state=all&kind=compat-review")
	r.get("requests-of-other-account", "other", "/requests")
	r.get("audit-page", "olga", "/audit?after=0&limit=20")
	r.anyNumber("size", "next").get("audit-checkpoints", "olga", "/audit/checkpoints?limit=1")
	r.get("audit-findings", "olga", "/audit/findings")
	r.get("analytics", "olga", "/analytics?days=1&zone=UTC")
	r.get("analytics-approver", "ana", "/analytics?days=1")
	r.get("analytics-unknown-zone", "olga", "/analytics?zone=Nowhere")
	r.wantStatus(400)
	r.post("policy-replay", "olga", "/policies/replay", fmt.Sprintf(`{"policy":%q,"seconds":3600}`, "version: \"2\"\ndefault: deny\n"))
}

// waitingRuns are the state keys of the runs that wait in the database, or are parked.
var waitingRuns = []string{"waiting-review", "waiting-transfer", "waiting-everything", "waiting-clerk", "waiting-doubt", "waiting-external", "parked"}

// workAddress is the address of the request of the node "work" of the graph "everything".
const workAddress = "runnable:everything;node:work"

// storedScenario reads what freshScenario left, resumes the runs that wait and lets them complete.
func storedScenario(r *recorder) {
	r.allowDevSessions()
	r.get("me-key", "ana", "/me")
	r.get("me-session", browser, "/me")
	r.wantStatus(200)
	r.get("me-revoked-key", "revoked", "/me")
	r.wantStatus(401)
	r.get("runs", "olga", "/runs?limit=100")
	requests := r.get("requests", "olga", "/requests?state=all&limit=100")
	list, _ := r.names.at(requests, "items").([]any)
	for i, one := range list {
		r.get(fmt.Sprintf("request-%d", i+1), "olga", "/requests/"+r.text(one, "id"))
		r.wantStatus(200)
	}
	for _, key := range []string{"review-1", "review-2", "transfer-1", "transfer-2", "transfer-2-again", "allowed", "denied", "failing", "rejected", "abandoned", "cancelled", "expired", "doubt-settled", "external-1", "parked"} {
		r.get("run-"+key, "olga", "/runs/"+key)
		r.wantStatus(200)
	}
	for _, key := range []string{"review-1", "transfer-1", "failing", "expired"} {
		r.get("events-"+key, "olga", "/runs/"+key+"/events")
	}
	p := r.get("policies", "olga", "/policies")
	r.get("policy-text", "olga", "/policies/"+r.text(p, "digest"))
	r.anyOrder("items").get("grants", "olga", "/grants")
	r.get("answers", "robot", "/answers")
	r.get("analytics", "olga", "/analytics?days=1&zone=UTC")
	r.get("audit", "olga", "/audit?limit=1000")
	r.get("audit-checkpoints", "olga", "/audit/checkpoints")
	r.get("audit-findings", "olga", "/audit/findings")
	r.post("policy-replay", "olga", "/policies/replay", fmt.Sprintf(`{"policy":%q,"seconds":86400}`, "version: \"2\"\ndefault: deny\n"))

	// What was done before the restart is still known.
	r.post("start-repeated", "robot", "/ai/chat", `{"graphId":"inproc:transfer","stateKey":"waiting-transfer","input":{"money":{"to":"shop","cents":8000}}}`)
	r.wantStatus(200)
	r.post("resume-repeated", "ana", "/ai/chat", `{"stateKey":"review-1","resumeId":"r1","resumeValue":`+revise+`}`)
	r.wantStatus(200)
	r.post("resume-id-reused", "ana", "/ai/chat", `{"stateKey":"review-1","resumeId":"r1","resumeValue":`+accept+`}`)
	r.wantStatus(422)
	r.start("start-under-grant", "inproc:transfer", "new-under-grant", `{"money":{"to":"grant-2","cents":500}}`)
	r.wantStatus(200)
	r.start("start-over-budget", "inproc:transfer", "new-over-budget", `{"money":{"to":"grant-2","cents":1999}}`)

	// The runs that wait are resumed.
	q := r.only("waiting-review")
	r.post("clarification-reply", "robot", "/requests/"+q.id+"/reply", `{"question":1,"text":"The author."}`)
	r.wantStatus(200)
	q.shown = r.text(r.get("request-after-reply", "eve", "/requests/"+q.id), "shown")
	r.decide("resume-review", "eve", q, "s1", accept)
	r.wantStatus(200)
	r.decide("resume-transfer", "eve", r.only("waiting-transfer"), "s2", approve)
	r.wantStatus(200)
	r.resumeEverything()
	r.decide("resume-clerk", "eve", r.only("waiting-clerk"), "s4", approve)
	r.wantStatus(200)
	r.decide("resume-doubt", "ana", r.only("waiting-doubt"), "s5", `{"happened":false,"reason":"asked the bank"}`)
	r.wantStatus(200)
	r.post("resume-external", "bob", "/ai/chat", `{"stateKey":"waiting-external","resumeId":"s6","resumeValue":"large"}`)
	r.wantStatus(200)
	r.post("retry-parked", "root", "/runs/parked/retry", "")
	r.wantStatus(204)
	time.Sleep(10 * time.Second)
	r.get("run-parked-after-retry", "root", "/runs/parked")
	r.get("answers-after", "robot", "/answers")
	r.anyOrder("items").get("grants-after", "olga", "/grants")
	r.get("runs-after", "olga", "/runs?limit=100")
	r.get("audit-findings-after", "olga", "/audit/findings")
}

// resumeEverything answers all that the graph "everything" waits for.
func (r *recorder) resumeEverything() {
	open := sorted(r.open("waiting-everything"))
	targets, shown := "", ""
	for i, q := range open {
		answer := `"yes"`
		switch q.node() {
		case "held":
			answer = "null"
		case "gate":
			answer = `{"approved":true,"approvedAt":"2000-01-01T00:00:00Z","approvedBy":"ana","feedback":"fine"}`
		}
		if i > 0 {
			targets, shown = targets+",", shown+","
		}
		targets += fmt.Sprintf("%q:%s", q.id, answer)
		shown += fmt.Sprintf("%q:%q", q.id, q.shown)
	}
	r.post("resume-everything", "ana", "/ai/chat", fmt.Sprintf(`{"stateKey":"waiting-everything","resumeId":"s3","resumeTargets":{%s},"shown":{%s}}`, targets, shown))
	r.wantStatus(200)
}
