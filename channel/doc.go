// Package channel is the port to the places where people see requests and decide: Slack, e-mail,
// pagers, webhooks.
//
//	desk event ─▶ notice ─▶ delivery (one per address) ─▶ Channel.Send ─▶ a copy that people see
//	                                                                          │ click
//	decision ◀─ JSON API, as the linked person ◀─ Receiver.Receive ◀─ Desk.Accept
//
// The stored request is the truth, and messages are views of it. The executor keeps one delivery
// per address and calls [Channel.Send] with a [Card] of the current request: first to post a copy,
// and again with the reference of the copy after each change. A copy that is sent after the
// decision has no actions.
//
// A channel implements [Channel], and these interfaces if it can do more:
//
//   - [Finder]: it can find a copy whose response was lost.
//   - [Receiver]: people can answer in it. An incoming message is stored by [Desk.Accept] before
//     it is acknowledged, and processed later by Receive.
//   - [Runner]: it has work of its own, such as a WebSocket connection.
//   - [Handler]: it serves HTTP requests.
//   - [Tester]: it can send a test message.
//   - [AddressChecker]: it can tell whether an address in a route is possible.
//   - [AddressLabeler]: its addresses contain secrets.
//   - [Personal]: it reaches people one by one.
//   - [InboxNotifier]: its addresses get the notices for the target inbox.
//
// A channel never trusts a name in a message. It asks [Desk.Client] for a client that acts as the
// person who linked this account of the channel, and uses the JSON API like every other client.
package channel
