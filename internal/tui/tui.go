// Package tui is the terminal inbox: list open requests, show one in full, and decide it.
//
//	err := tui.Run(ctx, tui.Config{Server: client})
//
// Screens are stacked above the list:
//
//	list ──↵──▶ detail ──a──▶ confirm ──y──▶ sent, back to the list
//	              │ e r f ──▶ form ──^s──▶ confirm
//
// Three rules apply everywhere. Text from agents never reaches the terminal unescaped: see
// sanitize.go. The displayed request never changes by itself: if the server has a newer version,
// the actions are disabled and a notice is shown. Typed text is kept until the person sends or
// discards it.
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

// Server is the part of the client that the inbox needs. Calls may be concurrent. An [*api.Problem]
// is an error response of the server; after any other error the result is unknown, and the call can
// be repeated.
type Server interface {
	Requests(ctx context.Context, q client.Query) (api.Page[api.Request], error)
	Request(ctx context.Context, id string) (api.Request, error)
	Decide(ctx context.Context, id string, decide api.Decide) (fermata.Outcome, error)
	// Act applies an action other than a decision. It is not repeated: after an error that is not
	// an *api.Problem, it is unknown whether it was applied.
	Act(ctx context.Context, id, act string, body api.RequestAction) (api.Request, error)
	Me(ctx context.Context) (api.Me, error)
	// Reveal returns a request with its masked values.
	Reveal(ctx context.Context, id string) (api.Request, error)
}

var _ Server = (*client.Client)(nil)

// Config configures the inbox. Only Server is required.
type Config struct {
	Server Server
	// Kind filters by kind.
	Kind string
	// Limit is the maximum number of requests. Defaults to 50.
	Limit int
	// Poll is the polling interval. Defaults to two seconds.
	Poll time.Duration
	// In and Out are the terminal. Default to standard output, and standard input or, if that is a
	// pipe, the process's terminal.
	In  io.Reader
	Out io.Writer
	// Now is the clock, NewID creates resume ids. Tests replace them.
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

// Run shows the inbox until the person quits or ctx ends.
func Run(ctx context.Context, config Config) error {
	config = config.withDefaults()
	return run(ctx, config, newModel(config, newCalls(ctx, config)))
}

func run(ctx context.Context, config Config, m tea.Model, options ...tea.ProgramOption) error {
	// Signals end ctx, and ^C is an ordinary key.
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

// IsScreen reports whether the inbox can be drawn on out. A dumb terminal cannot move its cursor.
func IsScreen(out io.Writer) bool {
	return IsTerminal(out) && os.Getenv("TERM") != "dumb"
}

// IsTerminal reports whether out is an interactive terminal.
func IsTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	return ok && term.IsTerminal(file.Fd())
}
