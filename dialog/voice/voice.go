// Package voice holds a conversation of package dialog over a telephone, or over another device
// with speech. A [Line] speaks and listens; [Call] connects it to the handler.
//
//	call := voice.Call{Handler: handler, Account: "acme", Conversation: "c-1", User: "ada", Line: line}
//	err := call.Run(ctx) // until the user hangs up
//
// A call says what is new in the conversation, listens, and passes the reply to the handler, with
// the confidence of the speech recognition. Package dialog does the rest: short wording, at most
// three options at a time, read-back, and risky confirmations on the screen. If the user hangs up
// at a question, it stays open: the next call repeats it, or the user answers on a screen.
//
// [Script] is a line for tests and demos.
package voice

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/fermata-go/fermata/dialog"
	"github.com/fermata-go/fermata/internal/ident"
)

// Line is a device that speaks and listens.
type Line interface {
	// Say speaks a text. It returns when the text was spoken, or when the user interrupts it.
	Say(ctx context.Context, text string, language dialog.Language) error
	// Hear returns the next reply of the user. It returns io.EOF if the user has hung up.
	Hear(ctx context.Context, language dialog.Language) (Heard, error)
}

// Heard is a reply of the user: spoken, or keys.
type Heard struct {
	Text string
	// Confidence is that of the speech recognition, from 0 to 1; 0 if it reports none.
	Confidence float64
	// Digits are the pressed keys, instead of a text.
	Digits string
}

// Call is a call of a user. Handler, Account, Conversation, User and Line are required.
type Call struct {
	Handler                     dialog.Handler
	Account, Conversation, User string
	Line                        Line
	// Language is that of the user; "" is that of the conversation.
	Language dialog.Language
	// Channel selects templates; "" is "phone".
	Channel string
	// Poll is how often the call looks for the result of a run that takes long; 0 is 200 ms.
	Poll time.Duration

	spoken int // number of the last line
}

// Run holds the call until the user hangs up; then it returns nil.
func (c *Call) Run(ctx context.Context) error {
	if c.Channel == "" {
		c.Channel = "phone"
	}
	if c.Poll <= 0 {
		c.Poll = 200 * time.Millisecond
	}
	record, err := c.Handler.Advance(ctx, c.Account, c.Conversation)
	switch {
	case err == nil:
		err = c.resume(ctx, record)
	case errors.Is(err, dialog.ErrNotFound): // the first message creates it
		err = nil
	}
	for err == nil {
		var heard Heard
		if heard, err = c.Line.Hear(ctx, c.language(record)); err != nil {
			break
		}
		record, err = c.Handler.Message(ctx, c.Account, c.Conversation, dialog.Message{
			ID: ident.Random("voice"), Text: heard.Text, Digits: heard.Digits, Recognition: heard.Confidence,
			Modality: dialog.Voice, Language: c.Language, Channel: c.Channel, Actor: c.User,
		})
		if err == nil {
			record, err = c.say(ctx, record)
		}
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func (c *Call) language(record dialog.Record) dialog.Language {
	if c.Language != "" {
		return c.Language
	}
	return record.Language
}

// resume repeats the last question of an earlier call, if it is still open.
func (c *Call) resume(ctx context.Context, record dialog.Record) error {
	c.spoken = record.Earlier + len(record.Lines)
	for i := len(record.Lines) - 1; i >= 0; i-- {
		p := record.Lines[i].Prompt
		if p == nil || p.Question == "" {
			continue
		}
		if a := record.Find(p.Question); a != nil && a.Status.Open() {
			return c.Line.Say(ctx, record.Lines[i].Text, c.language(record))
		}
	}
	return nil
}

// say speaks the new lines of others, until the assistant waits for the user.
func (c *Call) say(ctx context.Context, record dialog.Record) (dialog.Record, error) {
	for {
		lines, _ := record.Since(c.spoken)
		for _, line := range lines {
			if line.From != dialog.ByUser {
				if err := c.Line.Say(ctx, line.Text, c.language(record)); err != nil {
					return record, err
				}
			}
			c.spoken = line.N
		}
		if !record.Working {
			return record, nil
		}
		select {
		case <-ctx.Done():
			return record, ctx.Err()
		case <-time.After(c.Poll):
		}
		var err error
		if record, err = c.Handler.Advance(ctx, c.Account, c.Conversation); err != nil {
			return record, err
		}
	}
}
