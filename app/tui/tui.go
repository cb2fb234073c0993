// Package tui is the inbox in a terminal: what people are asked, what exactly, and their word on it.
//
//	err := tui.Run(ctx, tui.Config{Server: client})
//
// A screen lies on the one from which it was opened, and the list is at the bottom:
//
//	list ──↵──▶ detail ──a──▶ confirm ──y──▶ sent, back to the list
//	              │ e r f ──▶ form ──^s──▶ confirm
//
// Three rules hold everywhere. What agents wrote never reaches the terminal as it is: see safe.go. What a person looks at never
// changes by itself: if the server says something else by now, the buttons are frozen and a note says so. And what a person typed
// is kept until it is sent or thrown away by that person.
package tui

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/term"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/client"
)

// Server is what the inbox needs of a server. Its calls may come at once. An [*api.Problem] is the server's own word; any other
// error means that nobody knows, and that the call can be repeated.
type Server interface {
	Requests(ctx context.Context, q client.Query) (api.Page[api.Request], error)
	Request(ctx context.Context, id string) (api.Request, error)
	Decide(ctx context.Context, id string, decide api.Decide) (fermata.Outcome, error)
	// Act does something that decides nothing. It is not repeated: after an error that is no *api.Problem nobody knows whether it was done.
	Act(ctx context.Context, id, act string, body api.RequestAction) (api.Request, error)
	Me(ctx context.Context) (api.Me, error)
}

var _ Server = (*client.Client)(nil)

// Config says whose inbox it is and where it is shown. Only the server must be set.
type Config struct {
	Server Server
	// Kind leaves out all other kinds.
	Kind string
	// Limit is how many requests are shown at most; 50 by default.
	Limit int
	// Poll is how often the server is asked for news; every two seconds by default.
	Poll time.Duration
	// In and Out are the terminal; by default standard output, and standard input or, if that is a pipe, the terminal of this process.
	In  io.Reader
	Out io.Writer
	// Now is the clock, NewID names decisions. Tests have their own.
	Now   func() time.Time
	NewID func() string
}

const (
	defaultLimit = 50
	defaultPoll  = 2 * time.Second
)

func (c Config) withDefaults() Config {
	if c.Limit <= 0 {
		c.Limit = defaultLimit
	}
	if c.Poll <= 0 {
		c.Poll = defaultPoll
	}
	if c.Out == nil {
		c.Out = os.Stdout
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.NewID == nil {
		c.NewID = client.NewID
	}
	return c
}

// Run shows the inbox until the person leaves it or ctx ends.
func Run(ctx context.Context, config Config) error {
	config = config.withDefaults()
	return run(ctx, config, newModel(config, newCalls(ctx, config)))
}

func run(ctx context.Context, config Config, m tea.Model, options ...tea.ProgramOption) error {
	// Signals end ctx, and ^C is a key like any other.
	options = append(options, tea.WithContext(ctx), tea.WithOutput(config.Out), tea.WithoutSignalHandler())
	if config.In != nil {
		options = append(options, tea.WithInput(config.In))
	}
	_, err := tea.NewProgram(m, options...).Run()
	if errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// IsScreen reports whether the inbox can be drawn there. A terminal that calls itself dumb shows one line after the other, and what moves the cursor as letters.
func IsScreen(out io.Writer) bool {
	return IsTerminal(out) && os.Getenv("TERM") != "dumb"
}

// IsTerminal reports whether somebody can see what is written there, and answer by keys.
func IsTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	return ok && term.IsTerminal(file.Fd())
}
