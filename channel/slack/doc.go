// Package slack is the channel to a Slack workspace.
//
//	channel, err := slack.New(slack.Config{
//		Account: "acme", BotToken: botToken, SigningSecret: secret, // or AppToken for Socket Mode
//	})
//
// It posts a message with buttons for each request, and replaces the message after each change. A
// click comes back over signed HTTP or Socket Mode:
//
//	click ─▶ signature, age ─▶ Desk.Accept (stored) ─▶ 200 ─▶ Receive ─▶ JSON API as the linked person
//	                                                             └─ not counted: ephemeral message that says why
//
// Slack is not trusted to say who a person is. A Slack user acts only through a link that the
// person created in a signed-in browser session, and the API checks groups, separation of duties,
// the digest of what was shown and the strength of authentication.
//
// Text of agents and models is never part of Slack's markup: it is in plain_text objects and in
// preformatted blocks, so that it cannot contain links, mentions or formatting.
package slack
