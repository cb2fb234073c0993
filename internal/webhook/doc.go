// Package webhook sends events of requests, runs and effects to subscribed URLs.
//
// An event is a CloudEvent 1.0 in structured mode, signed as a Standard Webhook:
//
//	POST /hook
//	Content-Type: application/cloudevents+json
//	webhook-id: msg_…, webhook-timestamp: 1764590400, webhook-signature: v1,…
//
//	{"specversion": "1.0", "id": "run_1:3", "type": "fermata.request.decided", "subject": "int_1", "data": {…}}
//
// A receiver verifies the signature with the secret of its subscription, and detects duplicates by
// webhook-id. The events of a run arrive in order. The data describes the run and the request, with
// masked sensitive values, at the time of the delivery.
package webhook
