// Package webpush sends notifications to the browsers of people, also while no page of the inbox is
// open.
//
//	c, err := webpush.New(webpush.Config{Key: key, Subject: "mailto:ops@example.com"})
//
// A notification has a title, the facts of the request and the path of its page. It has no actions:
// a click opens the request, and people decide there. Texts of a model are not sent. A reminder
// replaces the earlier notification of the same request, and so does the outcome.
//
//	browser ── subscribes ─▶ push service          Fermata ── stores the [Subscription] of the browser
//	browser ◀── push ─────── push service ◀── POST ── Fermata, signed (VAPID) and encrypted
//
// The channel implements RFC 8030 (delivery), RFC 8291 (encryption) and RFC 8292 (VAPID). The push
// service, such as that of the vendor of the browser, cannot read a notification. It sees its
// length in steps of 256 bytes, its time to live, and how urgent it is.
package webpush
