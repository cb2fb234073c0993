package provider_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/provider"
)

// exampleProvider lets people in after an approval. It needs no state: its result depends only on
// the input and the answers, so that a repeated call after a crash returns the same.
type exampleProvider struct{}

func (exampleProvider) Name() string                        { return "doorman" }
func (exampleProvider) Graphs() []provider.Graph            { return []provider.Graph{{Name: "let-in"}} }
func (exampleProvider) Capabilities() provider.Capabilities { return provider.Capabilities{} }

// Execute asks once, with an id that is unique to the run.
func (exampleProvider) Execute(_ context.Context, x provider.Execution) (provider.Result, error) {
	if len(x.Answers) == 0 {
		return provider.Result{Outcome: provider.Waiting{Interrupts: []provider.Interrupt{{
			ID: x.Run.ID + ".1", Address: fermata.Address{{Type: "runnable", ID: "let-in"}},
			Envelope: fermata.Envelope{Kind: "let-in", Data: x.Input}, AnswerSchema: json.RawMessage(`{"type":"boolean"}`),
		}}}}, nil
	}
	answer := x.Answers[0]
	if answer.Expired {
		return provider.Result{Applied: []string{answer.InterruptID}, Outcome: provider.Failed{Code: "expired", Message: "the request expired"}}, nil
	}
	return provider.Result{Applied: []string{answer.InterruptID}, Outcome: provider.Completed{Output: answer.Data}}, nil
}

// CheckAnswer accepts true and false only.
func (exampleProvider) CheckAnswer(_ context.Context, _ provider.Run, interrupt string, answer json.RawMessage) (json.RawMessage, error) {
	var yes bool
	if err := json.Unmarshal(answer, &yes); err != nil {
		return nil, &fermata.AnswerError{ID: interrupt, Kind: "let-in", Err: err}
	}
	return answer, nil
}

func (exampleProvider) Delete(context.Context, provider.Run) error { return nil }

// A custom provider has six methods. Pass it to an executor in Config.Providers, or to a program
// with app.Provider; package providertest tests the other requirements.
func Example() {
	var p provider.Provider = exampleProvider{}
	run := provider.Run{Account: "acme", ID: "run_1", Graph: "let-in"}

	result, _ := p.Execute(context.Background(), provider.Execution{Run: run, Input: json.RawMessage(`{"who":"ann"}`)})
	question := result.Outcome.(provider.Waiting).Interrupts[0]
	fmt.Println(question.ID, string(question.Data))

	answer := provider.Answer{InterruptID: question.ID, Data: json.RawMessage(`true`), By: "bob"}
	result, _ = p.Execute(context.Background(), provider.Execution{Run: run, Answers: []provider.Answer{answer}})
	fmt.Println(string(result.Outcome.(provider.Completed).Output))
	// Output:
	// run_1.1 {"who":"ann"}
	// true
}
