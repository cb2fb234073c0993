package conversation_test

import (
	"fmt"
	"time"

	"github.com/fermata-go/fermata/dialog"
	"github.com/fermata-go/fermata/internal/dialog/conversation"
)

// The machine words a question, interprets the reply and returns the answer for the run.
func ExampleMachine() {
	var machine conversation.Machine
	talk := &dialog.Conversation{ID: "c-1", User: "ada", Language: dialog.English}
	now := time.Date(2027, 3, 1, 9, 0, 0, 0, time.UTC)

	question := dialog.Question{
		Kind: dialog.Disambiguation,
		Text: "Which Anna?",
		Options: []dialog.Option{
			{ID: "anna-m", Label: "Anna May", Facts: map[string]string{"team": "legal"}},
			{ID: "anna-r", Label: "Anna Roth", Facts: map[string]string{"team": "sales"}},
		},
	}
	target := dialog.Target{Run: "mail-1", Interrupt: "int_1"}
	if _, err := machine.Add(talk, "q1", target, question, conversation.Known{}, now); err != nil {
		fmt.Println(err)
		return
	}
	for _, prompt := range machine.Next(talk, now).Say {
		fmt.Println(prompt.Text)
	}

	for _, text := range []string{"Anna", "the one from legal"} {
		result, err := machine.Handle(talk, dialog.Message{Text: text, Actor: "ada", At: now}, conversation.Known{})
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, prompt := range result.Say {
			fmt.Println(prompt.Text)
		}
		for _, effect := range result.Effects {
			if answer, ok := effect.(conversation.Deliver); ok {
				fmt.Println(answer.Target.Run, "gets", answer.Answer.Option)
			}
		}
	}
	// Output:
	// Which Anna? (1) Anna May (legal) or (2) Anna Roth (sales).
	// I am not sure which one you mean. Which Anna? (1) Anna May (legal) or (2) Anna Roth (sales).
	// mail-1 gets anna-m
}
