// Package anthropic asks Claude through Anthropic's Messages API.
//
//	model, err := anthropic.New(anthropic.Config{Model: "claude-sonnet-5"}) // the key is in ANTHROPIC_API_KEY
//	if err != nil {
//		return err
//	}
//	response, err := model.Generate(ctx, &agent.Request{Messages: []agent.Message{
//		agent.System("Answer in one word."),
//		agent.User("What is the capital of France?"),
//	}})
//	...
//	fmt.Println(response.Message.Text)
//
// # Environment
//
// Of the environment only ANTHROPIC_API_KEY is read, by New, and only if the Config has neither a key nor a base URL:
// Anthropic's key goes to Anthropic. What else the vendor's client would look at (ANTHROPIC_BASE_URL, ANTHROPIC_AUTH_TOKEN,
// profiles on disk, ANTHROPIC_CUSTOM_HEADERS, …) changes nothing, and its OpenTelemetry spans, which a variable could make
// carry the conversation, are off.
//
// # How a conversation is sent
//
// The API wants user and assistant to take turns, beginning and ending with the user:
//
//	system, system           ─► the system prompt
//	user, user               ─► one turn of the user
//	tool results, user       ─► one turn of the user, the results first
//	assistant, assistant     ─► two turns, with "(continue)" from the user between them
//	assistant first or last  ─► "(continue)" from the user before or after it
//
// Assistants are kept apart, and not merged, so that what is sent before an answer is the same in all later requests: the
// service's cache and the signatures of newer models' thinking depend on it. Texts of white space alone are left out,
// since the API refuses them. [agent.Message.Agent] is not sent.
//
// Arguments of earlier calls that are not a JSON object are sent as {"_raw": "…"}. Ids of calls with characters that the
// API refuses are replaced by a hash of theirs.
//
// # Thinking
//
// How a model thinks is set with the API's own words:
//
//	Extra: map[string]any{"thinking": map[string]any{"type": "adaptive"}}
//
// What it thought, signed or redacted, is kept in [agent.Message.Opaque] with its place in the answer, and sent back
// unchanged to the same model; another model does not get it, nor does one that shall not think. A request that must call a
// tool goes without thinking of type "enabled", because the API refuses both together.
//
// Newer models tie their thinking to everything that was sent before it, the system prompt and the tools included. An agent
// that changes those between turns, or hands over to one with others, should ask the service to drop what no longer fits:
//
//	Betas: []string{"thinking-binding-controls-2026-08-01"},
//	Extra: map[string]any{"thinking": map[string]any{
//		"type": "adaptive", "block_binding": map[string]any{"prefix_mismatch_behavior": "drop_block"},
//	}},
//
// # Errors
//
// What the service refuses, and every failure of the connection, is an [agent.ModelError] with the service's words. It is
// temporary for the statuses 408, 409, 429 and 5xx (529 is Anthropic's overload), and for connections that fail or break
// off. An error inside of a stream has the status that it would have had before it. Requests are repeated as often as
// [Config.MaxRetries] allows before they fail; a stream is repeated only before its first byte. Redirects are not followed.
package anthropic
