// Package anthropic is a client for Claude through Anthropic's Messages API.
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
// New reads only ANTHROPIC_API_KEY from the environment, and only if the Config has neither a key
// nor a base URL: Anthropic's key is sent only to Anthropic. Other settings of the vendor's client
// (ANTHROPIC_BASE_URL, ANTHROPIC_AUTH_TOKEN, profiles on disk, ANTHROPIC_CUSTOM_HEADERS, …) are
// ignored. Its OpenTelemetry spans, which could contain the conversation, are disabled.
//
// # How a conversation is sent
//
// The API requires alternating user and assistant turns, beginning and ending with the user:
//
//	system, system           ─► the system prompt
//	user, user               ─► one turn of the user
//	tool results, user       ─► one turn of the user, the results first
//	assistant, assistant     ─► two turns, with "(continue)" from the user between them
//	assistant first or last  ─► "(continue)" from the user before or after it
//
// Assistant messages are not merged, so that the prefix of a conversation is the same in all later
// requests: the service's cache and the signatures of newer models' thinking depend on it. Texts
// that contain only white space are omitted, because the API rejects them. [agent.Message.Agent] is
// not sent.
//
// Arguments of earlier calls that are not a JSON object are sent as {"_raw": "…"}. Call ids with
// characters that the API rejects are replaced by a hash.
//
// # Thinking
//
// Thinking is configured with the API's fields:
//
//	Extra: map[string]any{"thinking": map[string]any{"type": "adaptive"}}
//
// The thinking, signed or redacted, is kept in [agent.Message.Opaque] with its position in the
// answer, and sent back unchanged to the same model. It is not sent to other models, or if thinking
// is disabled. A request that must call a tool is sent without thinking of type "enabled", because
// the API rejects the combination.
//
// Newer models bind their thinking to everything that was sent before it, including the system
// prompt and the tools. An agent that changes those between turns, or hands over to an agent with
// different ones, should ask the service to drop thinking that no longer matches:
//
//	Betas: []string{"thinking-binding-controls-2026-08-01"},
//	Extra: map[string]any{"thinking": map[string]any{
//		"type": "adaptive", "block_binding": map[string]any{"prefix_mismatch_behavior": "drop_block"},
//	}},
//
// # Errors
//
// Errors of the service and of the connection are an [agent.ModelError] with the service's message.
// They are temporary for the statuses 408, 409, 429 and 5xx (529 is Anthropic's overload), and for
// connections that fail or break. An error inside a stream has the status of the same error before
// the stream. Requests are retried up to [Config.MaxRetries] times; a stream is retried only before
// its first byte. Redirects are not followed.
package anthropic
