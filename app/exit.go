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
	"github.com/fermata-go/fermata/app/config"
	"github.com/fermata-go/fermata/audit"
	"github.com/fermata-go/fermata/client"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/store"
	"github.com/fermata-go/fermata/store/postgres"
	"github.com/fermata-go/fermata/store/sqlite"
)

// The exit codes. They do not change any more.
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

// exitCodes is the table in the help and in the README.
var exitCodes = []struct {
	code    int
	meaning string
}{
	{exitOK, "It is done."},
	{exitError, "It did not work, for a reason that has no code of its own."},
	{exitUsage, "What was said is wrong: the command line, the settings, the JSON of an input or an answer. Nothing was changed."},
	{exitNotFound, "There is nothing of that name."},
	{exitRejected, "Refused: no key, a wrong one, or one that may not do this."},
	{exitConflict, "Too late, or not as it was: already decided, expired, over, not what was shown, an id or a key that is in use."},
	{exitPending, "It is recorded and under way, or --timeout was over before the end. The same call again is safe."},
	{exitUnavailable, "The server or the store cannot be reached, or is at its limit. The same call again is safe."},
	{exitFindings, "Something has to be done or looked at: check found runs, migrate --dry-run migrations, audit something that does not agree."},
	{exitRunFailed, "The command did its work, but the run has failed or was cancelled."},
	{exitInterrupted, "Somebody ended the command (Ctrl-C)."},
}

// statusExits are the exit codes of what a server answers, by its status.
var statusExits = map[int]int{
	http.StatusBadRequest: exitUsage, http.StatusMethodNotAllowed: exitUsage, http.StatusRequestEntityTooLarge: exitUsage, http.StatusUnsupportedMediaType: exitUsage,
	http.StatusUnauthorized: exitRejected, http.StatusForbidden: exitRejected,
	http.StatusNotFound: exitNotFound,
	http.StatusConflict: exitConflict, http.StatusGone: exitConflict, http.StatusPreconditionFailed: exitConflict, http.StatusUnprocessableEntity: exitConflict,
	http.StatusRequestTimeout: exitUnavailable, http.StatusTooManyRequests: exitUnavailable, http.StatusBadGateway: exitUnavailable,
	http.StatusServiceUnavailable: exitUnavailable, http.StatusGatewayTimeout: exitUnavailable,
	http.StatusInternalServerError: exitError,
}

// usageError is a command line that is wrong.
type usageError struct{ error }

func (e *usageError) Unwrap() error { return e.error }

func usage(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

var (
	errNoStore         = errors.New("there is no store")
	errTimeout         = errors.New("it was not over in time")
	errNeedsAttention  = errors.New("something has to be done")
	errRunFailed       = errors.New("the run has failed")
	errPending         = errors.New("it is recorded, and under way")
	errNoFolder        = errors.New("there is no folder")
	errNoPolicy        = errors.New("the server has no policy: any one approver is asked about every action")
	errNoClarification = errors.New("no question waits for an answer")
	errNotViewed       = errors.New("you have not seen what would be decided")
	errKeyNotFound     = errors.New("there is no key")
	errNoLog           = errors.New("there is no log of this account")
	errNoDrawing       = errors.New("nothing is known of what is inside of it")
	errNoToken         = errors.New("there is no key: put one into FERMATA_TOKEN, or behind --token; fermata demo prints one, fermata keys create makes one")
)

// errorExits says which code and which exit an error has. The first that fits counts.
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
	{context.Canceled, "stopped", exitInterrupted},
	{errNoToken, "unauthenticated", exitRejected},
	{errNoStore, "not_found", exitNotFound},
	{errNoFolder, "not_found", exitNotFound},
	{errKeyNotFound, "not_found", exitNotFound},
	{errNoPolicy, "no_policy", exitNotFound},
	{errNoDrawing, "not_found", exitNotFound},
	{errNoLog, "not_found", exitNotFound},
	{errNoClarification, "not_possible", exitConflict},
	{errNotViewed, "digest_mismatch", exitConflict},
	{executor.ErrRunNotFound, "not_found", exitNotFound},
	{audit.ErrNotFound, "not_found", exitNotFound},
	{store.ErrNotFound, "not_found", exitNotFound},
	{executor.ErrRunEnded, "not_active", exitConflict},
	{executor.ErrNotParked, "not_active", exitConflict},
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

// listCommands says, by command, which one knows the names that it takes.
var listCommands = map[string]string{
	"watch": "runs", "cancel": "runs", "graphs": "runs", "grants revoke": "grants list",
	"show": "inbox --all --list", "approve": "inbox --list", "reject": "inbox --list", "answer": "inbox --list",
	"claim": "inbox --list", "release": "inbox --list", "comment": "inbox --list", "ask": "inbox --list", "reply": "inbox --list", "delegate": "inbox --list",
	"snooze": "inbox --list", "extend": "inbox --list", "escalate": "inbox --list", "escape": "inbox --list", "remember": "inbox --all --list",
}

// failure is an error for programs. It looks like the problems of the HTTP API.
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

// explain says what an error is.
func explain(err error) failure {
	f := failure{Code: "failed", Exit: exitError, Detail: err.Error()}
	if problem, ok := errors.AsType[*api.Problem](err); ok {
		exit := cmp.Or(statusExits[problem.Status], exitError)
		return failure{Code: problem.Code, Exit: exit, Detail: problem.Detail, Status: problem.Status, Title: problem.Title, Fields: problem.Fields, Decided: problem.Decided}
	}
	if invalid, ok := errors.AsType[*config.InvalidError](err); ok {
		f.Code, f.Exit, f.Detail, f.Mistakes = "invalid_settings", exitUsage, "the settings are wrong", invalid.Mistakes
		return f
	}
	if _, ok := errors.AsType[*usageError](err); ok {
		f.Code, f.Exit = "usage", exitUsage
		return f
	}
	if errors.Is(err, client.ErrPending) {
		f.Detail = strings.Replace(f.Detail, client.ErrPending.Error(), errPending.Error(), 1) + "; fermata watch shows what becomes of it"
	}
	for _, known := range errorExits {
		if errors.Is(err, known.err) {
			f.Code, f.Exit = known.code, known.exit
			return f
		}
	}
	if _, ok := errors.AsType[*url.Error](err); ok {
		f.Code, f.Exit = "unavailable", exitUnavailable
		f.Detail = "the server cannot be reached; --url or FERMATA_URL says where it is: " + f.Detail
	} else if _, ok := errors.AsType[*net.OpError](err); ok {
		f.Code, f.Exit = "unavailable", exitUnavailable
	}
	return f
}

// fail prints what went wrong, if anything did, and returns the exit code.
func (p *program) fail(err error) int {
	if err == nil {
		return exitOK
	}
	f := explain(err)
	if f.Code == "stopped" {
		f.Detail = "stopped; it can be called again"
	}
	if p.json {
		_ = json.NewEncoder(p.err).Encode(f) // there is nobody else to tell
		return f.Exit
	}
	text := f.Detail
	switch {
	case f.Mistakes != nil:
		text += "\n  " + strings.ReplaceAll(err.Error(), "\n", "\n  ")
	case f.Status != 0: // a problem says more than its detail
		text = err.Error()
	}
	fmt.Fprintln(p.err, "fermata:", escapeControls(cmp.Or(text, f.Code))) // some of it others wrote
	if f.Exit == exitUsage && f.Code == "usage" {
		fmt.Fprintln(p.err, strings.TrimSpace("Try: fermata help "+p.command))
	}
	if f.Status == http.StatusUnauthorized {
		fmt.Fprintln(p.err, "The key in FERMATA_TOKEN, or behind --token, is not good here; fermata keys create makes one, and each start of fermata demo a new one.")
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
