package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/client"
	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/config"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/postgres"
	"github.com/fermata-go/fermata/internal/store/sqlite"
)

// The exit codes. They are stable.
const (
	ExitOK          = 0
	ExitError       = 1
	ExitUsage       = 2
	ExitNotFound    = 3
	ExitRejected    = 4
	ExitConflict    = 5
	ExitPending     = 6
	ExitUnavailable = 7
	ExitFindings    = 8
	ExitRunFailed   = 9
	exitInterrupted = 130
)

// ExitCodes is the table in the help and in the documentation.
var ExitCodes = []struct {
	Code    int
	Meaning string
}{
	{ExitOK, "Success."},
	{ExitError, "Failure without a specific code."},
	{ExitUsage, "Invalid input: the command line, the configuration, or JSON. Nothing was changed."},
	{ExitNotFound, "Not found."},
	{ExitRejected, "Not authenticated, or not allowed."},
	{ExitConflict, "Conflict: already decided, expired, ended, changed since it was shown, or an id or key in use."},
	{ExitPending, "Recorded and in progress, or --timeout elapsed. Repeating the call is safe."},
	{ExitUnavailable, "The server or the store is unreachable or at its limit. Repeating the call is safe."},
	{ExitFindings, "Action required: check found runs, migrate --dry-run found migrations, audit or slack doctor has findings, or a test message cannot be sent."},
	{ExitRunFailed, "The command succeeded, but the run failed, was refused or was cancelled."},
	{exitInterrupted, "Interrupted (Ctrl-C)."},
}

// StatusExits maps HTTP statuses to exit codes.
var StatusExits = map[int]int{
	http.StatusBadRequest: ExitUsage, http.StatusMethodNotAllowed: ExitUsage, http.StatusRequestEntityTooLarge: ExitUsage, http.StatusUnsupportedMediaType: ExitUsage,
	http.StatusUnauthorized: ExitRejected, http.StatusForbidden: ExitRejected,
	http.StatusNotFound: ExitNotFound,
	http.StatusConflict: ExitConflict, http.StatusGone: ExitConflict, http.StatusPreconditionFailed: ExitConflict, http.StatusUnprocessableEntity: ExitConflict,
	http.StatusRequestTimeout: ExitUnavailable, http.StatusTooManyRequests: ExitUnavailable, http.StatusBadGateway: ExitUnavailable,
	http.StatusServiceUnavailable: ExitUnavailable, http.StatusGatewayTimeout: ExitUnavailable,
	http.StatusInternalServerError: ExitError,
}

// InvalidUsage marks an error as an invalid command line.
func InvalidUsage(err error) error { return &usageError{err} }

// Usagef returns an error about an invalid command line.
func Usagef(format string, args ...any) error { return InvalidUsage(fmt.Errorf(format, args...)) }

type usageError struct{ error }

func (e *usageError) Unwrap() error { return e.error }

var (
	ErrNoStore         = errors.New("no such store")
	ErrTimeout         = errors.New("timeout")
	ErrNeedsAttention  = errors.New("action required")
	ErrRunFailed       = errors.New("the run failed")
	ErrRefused         = errors.New("a person refused what the run asked for")
	errPending         = errors.New("recorded and in progress")
	ErrNoFolder        = errors.New("no such directory")
	ErrNoPolicy        = errors.New("the server has no policy: every action needs approval by any one approver")
	ErrNoClarification = errors.New("no open clarification request")
	ErrNotViewed       = errors.New("you have not seen the current version of the request")
	ErrKeyNotFound     = errors.New("no such key")
	ErrNoLog           = errors.New("the account has no audit log")
	ErrNoDrawing       = errors.New("no drawing available")
	errNoToken         = errors.New("no API key: set FERMATA_TOKEN or --token; fermata demo prints one, fermata keys create creates one")
)

// errorExits maps errors to problem and exit codes. The first match applies.
var errorExits = []struct {
	err  error
	code string
	exit int
}{
	{ErrTimeout, "timeout", ExitPending},
	{errPending, "pending", ExitPending},
	{client.ErrPending, "pending", ExitPending},
	{errFile, "invalid_file", ExitUsage},
	{client.ErrInvalidID, "usage", ExitUsage},
	{ErrNeedsAttention, "found", ExitFindings},
	{ErrRunFailed, "run_failed", ExitRunFailed},
	{ErrRefused, "run_refused", ExitRunFailed},
	{context.Canceled, "stopped", exitInterrupted},
	{errNoToken, "unauthenticated", ExitRejected},
	{ErrNoStore, "not_found", ExitNotFound},
	{ErrNoFolder, "not_found", ExitNotFound},
	{ErrKeyNotFound, "not_found", ExitNotFound},
	{ErrNoPolicy, "no_policy", ExitNotFound},
	{ErrNoDrawing, "not_found", ExitNotFound},
	{ErrNoLog, "not_found", ExitNotFound},
	{ErrNoClarification, "action_not_allowed", ExitConflict},
	{ErrNotViewed, "digest_mismatch", ExitConflict},
	{executor.ErrRunNotFound, "not_found", ExitNotFound},
	{audit.ErrNotFound, "not_found", ExitNotFound},
	{store.ErrNotFound, "not_found", ExitNotFound},
	{executor.ErrRunEnded, "not_active", ExitConflict},
	{executor.ErrNotRetryable, "not_retryable", ExitConflict},
	{executor.ErrWrongKey, "wrong_key", ExitRejected},
	{postgres.ErrDenied, "store_denied", ExitRejected},
	{postgres.ErrConfig, "usage", ExitUsage},
	{postgres.ErrUnavailable, "store_unavailable", ExitUnavailable},
	{postgres.ErrTimeout, "store_unavailable", ExitUnavailable},
	{postgres.ErrLocked, "store_unavailable", ExitUnavailable},
	{store.ErrFull, "store_full", ExitUnavailable},
	{store.ErrDisk, "store_unavailable", ExitUnavailable},
	{sqlite.ErrLocked, "store_unavailable", ExitUnavailable},
	{postgres.ErrNewer, "schema_newer", ExitError},
	{sqlite.ErrNewer, "schema_newer", ExitError},
}

// listCommands names the command that lists the objects that a command takes.
var listCommands = map[string]string{
	"watch": "runs", "cancel": "runs", "retry": "runs", "runs show": "runs", "graphs": "runs", "grants revoke": "grants list",
	"show": "inbox --all --list", "approve": "inbox --list", "reject": "inbox --list", "answer": "inbox --list",
	"claim": "inbox --list", "release": "inbox --list", "undo": "inbox --list", "comment": "inbox --list", "clarify": "inbox --list", "reply": "inbox --list", "delegate": "inbox --list",
	"snooze": "inbox --list", "extend": "inbox --list", "escalate": "inbox --list", "abandon": "inbox --list", "grants create": "inbox --all --list",
}

// failure is the JSON output of an error. It has the form of an API problem.
type failure struct {
	Code     string             `json:"code"`
	Detail   string             `json:"detail"`
	Exit     int                `json:"exit"`
	Status   int                `json:"status,omitempty"`
	Title    string             `json:"title,omitempty"`
	Fields   []api.Field        `json:"errors,omitempty"`
	Decided  *api.PriorDecision `json:"decided,omitempty"`
	Mistakes []config.Mistake   `json:"mistakes,omitempty"`
}

// Explain converts an error.
func Explain(err error) failure {
	f := failure{Code: "failed", Exit: ExitError, Detail: err.Error()}
	if problem, ok := errors.AsType[*api.Problem](err); ok {
		exit := cmp.Or(StatusExits[problem.Status], ExitError)
		return failure{Code: problem.Code, Exit: exit, Detail: problem.Detail, Status: problem.Status, Title: problem.Title, Fields: problem.Fields, Decided: problem.Decided}
	}
	if invalid, ok := errors.AsType[*config.InvalidError](err); ok {
		f.Code, f.Exit, f.Detail, f.Mistakes = "invalid_settings", ExitUsage, "invalid configuration", invalid.Mistakes
		return f
	}
	if _, ok := errors.AsType[*usageError](err); ok {
		f.Code, f.Exit = "usage", ExitUsage
		return f
	}
	if errors.Is(err, client.ErrPending) {
		f.Detail = strings.Replace(f.Detail, client.ErrPending.Error(), errPending.Error(), 1) + "; follow it with fermata watch"
	}
	for _, known := range errorExits {
		if errors.Is(err, known.err) {
			f.Code, f.Exit = known.code, known.exit
			return f
		}
	}
	if _, ok := errors.AsType[*url.Error](err); ok {
		f.Code, f.Exit = "unavailable", ExitUnavailable
		f.Detail = "the server is unreachable; set its address with --url or FERMATA_URL: " + f.Detail
	} else if _, ok := errors.AsType[*net.OpError](err); ok {
		f.Code, f.Exit = "unavailable", ExitUnavailable
	}
	return f
}

// Fail prints an error, if there is one, and returns the exit code.
func (p *Program) Fail(err error) int {
	if err == nil {
		return ExitOK
	}
	f := Explain(err)
	if f.Code == "stopped" {
		f.Detail = "interrupted; it is safe to repeat the call"
	}
	if p.JSON {
		_ = json.NewEncoder(p.Err).Encode(f) // there is no other place to report it
		return f.Exit
	}
	text := f.Detail
	switch {
	case f.Mistakes != nil:
		text += "\n  " + strings.ReplaceAll(err.Error(), "\n", "\n  ")
	case f.Status != 0: // a problem has more than its detail
		text = err.Error()
	}
	// it may contain text of other people
	fmt.Fprintln(p.Err, "fermata:", EscapeControls(cmp.Or(text, f.Code)))
	if f.Exit == ExitUsage && f.Code == "usage" {
		fmt.Fprintln(p.Err, strings.TrimSpace("Try: "+p.ProgramName()+" help "+p.Command))
	}
	if f.Status == http.StatusUnauthorized {
		fmt.Fprintln(p.Err, "The API key in FERMATA_TOKEN or --token is not valid on this server; fermata keys create creates one, and each start of fermata demo prints a new one.")
	}
	list := listCommands[p.Command]
	if f.Code == "unknown_graph" {
		list = "graphs"
	}
	if list != "" && f.Status == http.StatusNotFound {
		fmt.Fprintln(p.Err, "Try:", p.ProgramName(), list)
	}
	return f.Exit
}
