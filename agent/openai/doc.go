// Package openai is a client for OpenAI's chat completions API: for OpenAI itself and for the many
// compatible servers, such as Ollama, vLLM, llama.cpp and most gateways.
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
// A local server needs no key:
//
//	model, err := openai.New(openai.Config{BaseURL: "http://localhost:11434/v1", Model: "qwen3"})
//
// # Environment
//
// New reads only OPENAI_API_KEY from the environment, and only if the Config has neither a key nor
// a base URL: OpenAI's key is sent only to OpenAI. Other variables of the vendor's client
// (OPENAI_BASE_URL, OPENAI_ORG_ID, OPENAI_PROJECT_ID, OPENAI_CUSTOM_HEADERS, …) are ignored, so
// that a stray one cannot redirect conversations.
//
// # Requests and responses
//
// Messages, tool calls and results are sent one by one and in order. [agent.Message.Agent] is not
// sent. A failed result is sent like any other: the protocol has no flag for it, so the text must
// say so. Arguments of earlier calls are sent as the model wrote them, JSON or not. Call ids that
// are too long for OpenAI are replaced by a hash.
//
// If there are tool calls, FinishReason is [agent.FinishToolCalls], although servers send "stop"
// when the call was forced. If the model refuses, the text is its refusal and FinishReason is
// [agent.FinishContentFilter].
//
// A streamed answer is complete when the model has sent its finish reason. A stream that ends
// before is an error, and its text is discarded.
//
// # Errors
//
// Errors of the service and of the connection are an [agent.ModelError] with the service's message.
// They are temporary for the statuses 408, 409, 429 and 5xx, and for connections that fail or
// break. Errors inside an answer that has begun, as gateways send them, are treated the same.
// Requests are retried up to [Config.MaxRetries] times; a stream is retried only before its first
// byte. Redirects are not followed.
package openai
