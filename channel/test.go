package channel

import (
	"context"
	"time"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/desk"
)

// Tester is implemented by channels that can send a test message. The message says that it is a
// test, and that there is nothing to decide.
type Tester interface {
	// Test sends a test message to an address without the kind of the channel. An error is for the
	// operator: it says what to do, and has no secrets.
	Test(ctx context.Context, to string) (TestResult, error)
}

// TestResult is what became of a test message.
type TestResult struct {
	// Sent says where the message is, such as "the mail server accepted the message".
	Sent string
	// Answer waits until a person has answered the message and the server has processed the answer.
	// It returns what the server said. It is nil if people cannot answer in the channel.
	Answer func(ctx context.Context) (string, error)
}

// NoticeTest is the kind of a test message.
const NoticeTest desk.NoticeKind = "test"

// TestMessage returns a test message for channels that render cards.
func TestMessage(to string, now time.Time) Message {
	return Message{
		Delivery: "test-" + now.UTC().Format("20060102T150405.000000000"), Attempt: 1, Kind: NoticeTest, To: to, Severity: "info",
		Card: Card{
			Request: "test", Kind: "test", Presentation: api.Presentation{Title: "Test message from Fermata", Sentence: "This message tests the channel. There is nothing to decide."},
			State: desk.StateOpen, Created: now, At: now,
		},
	}
}
