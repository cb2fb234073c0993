package dialog

import "context"

// Model judges replies that exact rules do not understand. An error counts as no judgement: the
// question is asked again. Judge is called outside of transactions and may be called again for the
// same message.
type Model interface {
	Judge(ctx context.Context, question Asking, reply string) (Judgement, error)
}

// Judgement is a model's interpretation of a reply. It counts only where exact rules find nothing,
// and only with a high score. It can never confirm an action.
type Judgement struct {
	Verdict Verdict `json:"verdict"`
	Score   float64 `json:"score"` // of the verdict, 0 to 1
	// Option is the option that the reply means, with its score and that of the next best one.
	Option      string  `json:"option,omitempty"`
	OptionScore float64 `json:"option_score,omitempty"`
	RunnerUp    float64 `json:"runner_up,omitempty"`
	// Explanation answers a counter-question.
	Explanation string `json:"explanation,omitempty"`
	// Entity is the person that the reply describes, after "someone else".
	Entity *Entity `json:"entity,omitempty"`
}
