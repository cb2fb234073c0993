package dialog

import (
	"fmt"
	"slices"
	"strings"
)

// Validate returns ErrInvalidQuestion, with the reason, for a question that cannot be asked.
func (q *Question) Validate() error {
	invalid := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{ErrInvalidQuestion}, args...)...)
	}
	seen := make(map[string]bool)
	for _, o := range q.Options {
		switch {
		case o.ID == "" || o.Label == "":
			return invalid("an option has no id or label")
		case seen[o.ID]:
			return invalid("two options have the id %q", o.ID)
		case slices.Contains([]string{ChoiceYes, ChoiceNo, ChoiceOther, ChoiceEscape}, o.ID):
			return invalid("the option id %q is reserved", o.ID)
		}
		seen[o.ID] = true
	}
	names := make(map[string]bool)
	for _, f := range q.Fields {
		if f.Name == "" || names[f.Name] {
			return invalid("a field has no name, or two have the same")
		}
		if f.Type == ChoiceField && len(f.Choices) == 0 {
			return invalid("the field %q has no choices", f.Name)
		}
		if f.NotPast && f.Type != DateField {
			return invalid("the field %q is not a date, so it cannot be past", f.Name)
		}
		names[f.Name] = true
	}
	switch q.Kind {
	case Confirmation:
		if len(q.Options) > 0 || q.AllowOther || q.Remember != nil || q.Relevance == NonBlocking {
			return invalid("a confirmation has no options, is blocking and is not remembered")
		}
	case Disambiguation:
		if len(q.Options) == 0 {
			return invalid("a disambiguation needs options")
		}
	case Form:
		if len(q.Fields) == 0 || q.Relevance == NonBlocking {
			return invalid("a form has fields and is blocking")
		}
	case Clarification:
	default:
		return invalid("unknown kind %q", q.Kind)
	}
	switch {
	case strings.TrimSpace(q.Text) == "":
		return invalid("no text")
	case q.Kind != Form && len(q.Fields) > 0:
		return invalid("only a form has fields")
	case q.Relevance != "" && q.Relevance != Blocking && q.Relevance != NonBlocking:
		return invalid("unknown relevance %q", q.Relevance)
	case q.Risk < RiskNone || q.Risk > RiskCritical:
		return invalid("unknown risk %d", q.Risk)
	case q.Default != "" && !seen[q.Default]:
		return invalid("the default %q is not an option", q.Default)
	case q.Relevance == NonBlocking && q.Kind == Disambiguation && q.Default == "":
		return invalid("a non-blocking disambiguation needs a default")
	case q.Remember != nil && (q.Remember.Key == "" || q.Remember.Scope != ScopeConversation && q.Remember.Scope != ScopeUser):
		return invalid("a remembered answer needs a key and a scope")
	}
	return nil
}
