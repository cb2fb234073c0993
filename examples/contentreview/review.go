package main

import (
	"errors"
	"strings"

	"github.com/fermata-go/fermata"
)

// Review is the kind of the only question of this graph.
var Review = fermata.NewKind[Question, Verdict]("content-review")

// Question is shown to the reviewer.
type Question struct {
	Reason           string            `json:"reason"`
	Draft            Draft             `json:"draft"`
	Warnings         []string          `json:"warnings"`
	SuggestedActions []SuggestedAction `json:"suggestedActions"`
}

// Draft is an unfinished text.
type Draft struct {
	ID      string `json:"id"`
	Content string `json:"content"`
}

// SuggestedAction is one of the reviewer's possible answers, for example for a button.
type SuggestedAction struct {
	ID        string `json:"id"`
	Label     string `json:"label"`
	Action    Action `json:"action"`
	IsPrimary bool   `json:"isPrimary,omitempty"`
}

// Verdict is the reviewer's answer.
type Verdict struct {
	Action        Action `json:"action"`
	Feedback      string `json:"feedback,omitempty"`
	EditedContent string `json:"editedContent,omitempty"`
}

// Action is the reviewer's choice.
type Action string

// The actions of a reviewer.
const (
	Approve Action = "approve"
	Revise  Action = "revise"
	Reject  Action = "reject"
)

// Choices lists the actions. Other values are invalid.
func (Action) Choices() []string { return []string{string(Approve), string(Revise), string(Reject)} }

// Validate checks what the types cannot express.
func (v Verdict) Validate() error {
	if v.Action == Revise && strings.TrimSpace(v.Feedback) == "" {
		return errors.New("feedback is required to revise")
	}
	if v.Action != Approve && v.EditedContent != "" {
		return errors.New("editedContent is allowed only with approve")
	}
	return nil
}
