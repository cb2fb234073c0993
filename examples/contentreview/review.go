package main

import (
	"errors"
	"strings"

	"github.com/fermata-go/fermata"
)

// Review is the kind of the one question that this graph asks.
var Review = fermata.NewKind[Question, Verdict]("content-review")

// Question is what the reviewer sees.
type Question struct {
	Reason           string            `json:"reason"`
	Draft            Draft             `json:"draft"`
	Warnings         []string          `json:"warnings"`
	SuggestedActions []SuggestedAction `json:"suggestedActions"`
}

// Draft is a text in the making.
type Draft struct {
	ID      string `json:"id"`
	Content string `json:"content"`
}

// SuggestedAction is one of the answers that the reviewer may give, as a button would show it.
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

// Action is what the reviewer wants to happen.
type Action string

// The actions of a reviewer.
const (
	Approve Action = "approve"
	Revise  Action = "revise"
	Reject  Action = "reject"
)

// Choices lists the actions, so that no other word passes for an answer.
func (Action) Choices() []string { return []string{string(Approve), string(Revise), string(Reject)} }

// Validate checks what the types alone cannot say.
func (v Verdict) Validate() error {
	if v.Action == Revise && strings.TrimSpace(v.Feedback) == "" {
		return errors.New("to revise, feedback must say what should change")
	}
	if v.Action != Approve && v.EditedContent != "" {
		return errors.New("editedContent goes only with approve")
	}
	return nil
}
