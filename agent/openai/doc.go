// Package openai asks models that speak OpenAI's chat completions: OpenAI's own, and those of the many servers that offer
// the same interface, as Ollama, vLLM, llama.cpp and most gateways do.
//
//	model, err := openai.New(openai.Config{Model: "gpt-5-mini"}) // the key is in OPENAI_API_KEY
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
// A server on this machine needs no key:
//
//	model, err := openai.New(openai.Config{BaseURL: "http://localhost:11434/v1", Model: "qwen3"})
//
// # Environment
//
// Of the environment only OPENAI_API_KEY is read, by New, and only if the Config has neither a key nor a base URL: OpenAI's
// key goes to OpenAI. The other variables that the vendor's client knows (OPENAI_BASE_URL, OPENAI_ORG_ID,
// OPENAI_PROJECT_ID, OPENAI_CUSTOM_HEADERS, …) change nothing, so that a stray one cannot send conversations elsewhere.
//
// # What is sent and what comes back
//
// Messages, tool calls and results are sent one by one and in order. [agent.Message.Agent] is not sent. A failed result is
// sent as any other: the protocol has no mark for it, its text has to say so. Arguments of earlier calls are sent as the
// model wrote them, JSON or not. Ids of calls that are longer than OpenAI takes are replaced by a hash of theirs.
//
// If there are tool calls, Finish is [agent.FinishToolCalls] although servers say "stop" when the call was forced. If the model
// refuses, the text is its refusal and Finish is [agent.FinishContentFilter].
//
// A streamed answer is whole once the model gave its reason to stop. A stream that ends before is an error, and what it said
// until then is no answer.
//
// # Errors
//
// What the service refuses, and every failure of the connection, is an [agent.ModelError] with the service's words. It is
// temporary for the statuses 408, 409, 429 and 5xx, and for connections that fail or break off. It makes no difference whether a
// service says so at once or in an answer that had begun, as gateways do. Before that, the request
// has been repeated as often as [Config.MaxRetries] allows; a stream is repeated only before its first byte. Redirects are
// not followed.
package openai
