package app

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
	"github.com/fermata-go/fermata/store/postgres"
	"github.com/fermata-go/fermata/store/sqlite"
)

// The exit codes. They are stable.
const (
	exitOK          = 0
	exitError       = 1
	exitUsage       = 2
	exitNotFound    = 3
	exitRejected    = 4
	exitConflict    = 5
	exitPending     = 6
	exitUnavailable = 7
	exitFindings    = 8
	exitRunFailed   = 9
	exitInterrupted = 130
)

// exitCodes is the table in the help and in the documentation.
var exitCodes = []struct {
	code    int
	meaning string
}{
	{exitOK, "Success."},
	{exitError, "Failure without a specific code."},
	{exitUsage, "Invalid input: the command line, the configuration, or JSON. Nothing was changed."},
	{exitNotFound, "Not found."},
	{exitRejected, "Not authenticated, or not allowed."},
	{exitConflict, "Conflict: already decided, expired, ended, changed since it was shown, or an id or key in use."},
	{exitPending, "Recorded and in progress, or --timeout elapsed. Repeating the call is safe."},
	{exitUnavailable, "The server or the store is unreachable or at its limit. Repeating the call is safe."},
	{exitFindings, "Action required: check found runs, migrate --dry-run found migrations, audit or slack doctor has findings, or a test message cannot be sent."},
	{exitRunFailed, "The command succeeded, but the run failed, was refused or was cancelled."},
	{exitInterrupted, "Interrupted (Ctrl-C)."},
}

// statusExits maps HTTP statuses to exit codes.
var statusExits = map[int]int{
	http.StatusBadRequest: exitUsage, http.StatusMethodNotAllowed: exitUsage, http.StatusRequestEntityTooLarge: exitUsage, http.StatusUnsupportedMediaType: exitUsage,
	http.StatusUnauthorized: exitRejected, http.StatusForbidden: exitRejected,
	http.StatusNotFound: exitNotFound,
	http.StatusConflict: exitConflict, http.StatusGone: exitConflict, http.StatusPreconditionFailed: exitConflict, http.StatusUnprocessableEntity: exitConflict,
	http.StatusRequestTimeout: exitUnavailable, http.StatusTooManyRequests: exitUnavailable, http.StatusBadGateway: exitUnavailable,
	http.StatusServiceUnavailable: exitUnavailable, http.StatusGatewayTimeout: exitUnavailable,
	http.StatusInternalServerError: exitError,
}

// usageError is an invalid command line.
type usageError struct{ error }

func (e *usageError) Unwrap() error { return e.error }

func usage(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

var (
	errNoStore         = errors.New("no such store")
	errTimeout         = errors.New("timeout")
	errNeedsAttention  = errors.New("action required")
	errRunFailed       = errors.New("the run failed")
	errRefused         = errors.New("a person refused what the run asked for")
	errPending         = errors.New("recorded and in progress")
	errNoFolder        = errors.New("no such directory")
	errNoPolicy        = errors.New("the server has no policy: every action needs approval by any one approver")
	errNoClarification = errors.New("no open clarification request")
	errNotViewed       = errors.New("you have not seen the current version of the request")
	errKeyNotFound     = errors.New("no such key")
	errNoLog           = errors.New("the account has no audit log")
	errNoDrawing       = errors.New("no drawing available")
	errNoToken         = errors.New("no API key: set FERMATA_TOKEN or --token; fermata demo prints one, fermata keys create creates one")
)

// errorExits maps errors to problem and exit codes. The first match applies.
var errorExits = []struct {
	err  error
	code string
	exit int
}{
	{errTimeout, "timeout", exitPending},
	{errPending, "pending", exitPending},
	{client.ErrPending, "pending", exitPending},
	{errFile, "invalid_file", exitUsage},
	{client.ErrInvalidID, "usage", exitUsage},
	{errNeedsAttention, "found", exitFindings},
	{errRunFailed, "run_failed", exitRunFailed},
	{errRefused, "run_refused", exitRunFailed},
	{context.Canceled, "stopped", exitInterrupted},
	{errNoToken, "unauthenticated", exitRejected},
	{errNoStore, "not_found", exitNotFound},
	{errNoFolder, "not_found", exitNotFound},
	{errKeyNotFound, "not_found", exitNotFound},
	{errNoPolicy, "no_policy", exitNotFound},
	{errNoDrawing, "not_found", exitNotFound},
	{errNoLog, "not_found", exitNotFound},
	{errNoClarification, "action_not_allowed", exitConflict},
	{errNotViewed, "digest_mismatch", exitConflict},
	{executor.ErrRunNotFound, "not_found", exitNotFound},
	{audit.ErrNotFound, "not_found", exitNotFound},
	{store.ErrNotFound, "not_found", exitNotFound},
	{executor.ErrRunEnded, "not_active", exitConflict},
	{executor.ErrNotRetryable, "not_retryable", exitConflict},
	{executor.ErrWrongKey, "wrong_key", exitRejected},
	{postgres.ErrDenied, "store_denied", exitRejected},
	{postgres.ErrConfig, "usage", exitUsage},
	{postgres.ErrUnavailable, "store_unavailable", exitUnavailable},
	{postgres.ErrTimeout, "store_unavailable", exitUnavailable},
	{postgres.ErrLocked, "store_unavailable", exitUnavailable},
	{store.ErrFull, "store_full", exitUnavailable},
	{store.ErrDisk, "store_unavailable", exitUnavailable},
	{sqlite.ErrLocked, "store_unavailable", exitUnavailable},
	{postgres.ErrNewer, "schema_newer", exitError},
	{sqlite.ErrNewer, "schema_newer", exitError},
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

// explain converts an error.
func explain(err error) failure {
	f := failure{Code: "failed", Exit: exitError, Detail: err.Error()}
	if problem, ok := errors.AsType[*api.Problem](err); ok {
		exit := cmp.Or(statusExits[problem.Status], exitError)
		return failure{Code: problem.Code, Exit: exit, Detail: problem.Detail, Status: problem.Status, Title: problem.Title, Fields: problem.Fields, Decided: problem.Decided}
	}
	if invalid, ok := errors.AsType[*config.InvalidError](err); ok {
		f.Code, f.Exit, f.Detail, f.Mistakes = "invalid_settings", exitUsage, "invalid configuration", invalid.Mistakes
		return f
	}
	if _, ok := errors.AsType[*usageError](err); ok {
		f.Code, f.Exit = "usage", exitUsage
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
		f.Code, f.Exit = "unavailable", exitUnavailable
		f.Detail = "the server is unreachable; set its address with --url or FERMATA_URL: " + f.Detail
	} else if _, ok := errors.AsType[*net.OpError](err); ok {
		f.Code, f.Exit = "unavailable", exitUnavailable
	}
	return f
}

// fail prints an error, if there is one, and returns the exit code.
func (p *program) fail(err error) int {
	if err == nil {
		return exitOK
	}
	f := explain(err)
	if f.Code == "stopped" {
		f.Detail = "interrupted; it is safe to repeat the call"
	}
	if p.json {
		_ = json.NewEncoder(p.err).Encode(f) // there is no other place to report it
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
	fmt.Fprintln(p.err, "fermata:", escapeControls(cmp.Or(text, f.Code)))
	if f.Exit == exitUsage && f.Code == "usage" {
		fmt.Fprintln(p.err, strings.TrimSpace("Try: fermata help "+p.command))
	}
	if f.Status == http.StatusUnauthorized {
		fmt.Fprintln(p.err, "The API key in FERMATA_TOKEN or --token is not valid on this server; fermata keys create creates one, and each start of fermata demo prints a new one.")
	}
	list := listCommands[p.command]
	if f.Code == "unknown_graph" {
		list = "graphs"
	}
	if list != "" && f.Status == http.StatusNotFound {
		fmt.Fprintln(p.err, "Try: fermata", list)
	}
	return f.Exit
}
