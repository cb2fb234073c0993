package executor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/dialog"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/dialog/conversation"
	"github.com/fermata-go/fermata/internal/dialog/runs"
	"github.com/fermata-go/fermata/internal/embedded"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/seal"
	storeport "github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/encrypted"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/internal/webhook"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/inproc"
	"github.com/fermata-go/fermata/store"
)

// Config configures an executor. Store, and Graphs or Providers, are required.
type Config struct {
	// Store keeps everything that must outlive the process. The caller closes it, after Stop.
	Store *store.Store
	// KeyFile is the file with the key that encrypts the store. It is created together with a new
	// store. All processes on one store need the same file; keep a copy of it, separate from the
	// backups of the store. A store of package store/memory needs none.
	KeyFile string

	// Graphs are graphs and agents of this program. Their ids begin with "inproc:".
	Graphs []inproc.Graph
	// Providers are other engines.
	Providers []provider.Provider

	// PolicyFile is a file with rules: see docs/policy.md. It is read again when it changes; a file
	// with a mistake changes nothing. Without one, each action needs approval by any one approver.
	PolicyFile string
	// Groups lists the members of the groups that the policy names: {"dba": {"ann", "bob"}}.
	Groups map[string][]string
	// Environment, such as "prod", is an input of the policy.
	Environment string
	// RequestTimeout is how long a request may be open. The default is 24 h; a negative value means
	// no limit.
	RequestTimeout time.Duration

	// Channels deliver notices to people. Their kinds differ. Without channels people find requests
	// in the inbox only.
	Channels []channel.Channel
	// PublicURL is the address of the server in browsers, for links in messages; "" for none. With
	// https, cookies are for TLS only.
	PublicURL string
	// Dialog has agents talk to end users, in conversations; nil for none.
	Dialog *DialogConfig

	// Workers is how many runs of others this process executes at the same time. The default is 4.
	Workers int
	// Wait is how long StartRun and Decide wait for the outcome. The default is 5 s.
	Wait time.Duration
	// Retention is how long a run is kept after it has ended. By default runs are kept.
	Retention time.Duration
	// Log gets messages for operators; never the data of runs. The default is slog.Default.
	Log *slog.Logger
}

// DialogConfig configures the assistants that end users talk to. Graph or Assistants are required.
type DialogConfig struct {
	// Graph is the graph or agent that a message of a user starts, such as "inproc:assistant".
	Graph string
	// Assistants are further ones. A conversation begins with one of them if it names it, or if
	// there is no Graph; then the first one is the default. Their input is that of an agent.
	Assistants []dialog.Assistant
	// Input returns the input of a run of Graph. The default is the input of an agent.
	Input func(dialog.Start) (json.RawMessage, error)
	// Machine has the wording and the rules of the conversation. With Machine.HandOver, people
	// answer in the inbox what a user does not answer clearly.
	Machine dialog.Machine
	// Model judges replies that exact rules do not understand; nil for none.
	Model dialog.Model
	// Retention is how long a conversation is kept after the last message of its user; 0 means
	// until its account is erased.
	Retention time.Duration
	// Language is that of conversations that name none; "" is English.
	Language dialog.Language
}

// New opens an executor. It returns ErrWrongKey if the store was written with another key.
func New(config Config) (*Executor, error) {
	port, err := storeport.Of(config.Store)
	if err != nil {
		return nil, fmt.Errorf("executor: Config.Store: %w", err)
	}
	sealer, created, err := openKey(config.KeyFile, port)
	if err != nil {
		return nil, fmt.Errorf("executor: Config.KeyFile: %w", err)
	}
	own, err := providers(config)
	if err != nil {
		return nil, err
	}
	rules, err := openPolicy(config)
	if err != nil {
		return nil, fmt.Errorf("executor: Config.PolicyFile: %w", err)
	}
	hooks, err := webhook.New(nil)
	if err != nil {
		return nil, err
	}
	people := directory(config.Groups)
	internal := executor.Config{
		Store: port, Sealer: sealer, Providers: own, RequestTimeout: config.RequestTimeout, Workers: config.Workers, Wait: config.Wait,
		Retention: config.Retention, Webhooks: hooks, Log: config.Log,
		Desk: executor.DeskConfig{Directory: people, Environment: config.Environment, Channels: config.Channels, BaseURL: config.PublicURL},
	}
	if rules != nil {
		internal.Desk.Policy = rules
	}
	e := &Executor{rules: rules, log: cmp.Or(config.Log, slog.Default()), done: make(chan struct{})}
	e.parts = embedded.Parts{Store: port, Sealer: sealer, Channels: config.Channels}
	if e.parts.Executor, err = executor.New(internal); err != nil {
		if created && errors.Is(err, ErrWrongKey) {
			_ = os.Remove(config.KeyFile) // it can decrypt nothing
			err = fmt.Errorf("executor: Config.KeyFile: %s does not exist, and without it the store cannot be decrypted: restore it: %w", config.KeyFile, err)
		}
		return nil, err
	}
	if e.parts.Dialog, err = openDialog(config.Dialog, e.parts); err != nil {
		return nil, fmt.Errorf("executor: Config.Dialog: %w", err)
	}
	return e, nil
}

// openKey opens the key file. If it does not exist it is created.
func openKey(file string, port storeport.Store) (sealer encrypted.Sealer, created bool, err error) {
	if file == "" {
		if _, ok := port.(*memory.Store); !ok {
			return nil, false, errors.New("missing: it has the key that encrypts the store, and is created with the store")
		}
		key, err := seal.NewKey()
		if err != nil {
			return nil, false, err
		}
		sealer, err = seal.New(key)
		return sealer, false, err
	}
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		created = true
		if err := encrypted.CreateKeyFile(file); err != nil {
			return nil, false, err
		}
	}
	sealer, err = encrypted.OpenKeyFile(file)
	return sealer, created, err
}

// openPolicy reads the policy; nil without one.
func openPolicy(config Config) (*policy.LiveSet, error) {
	if config.PolicyFile == "" {
		return nil, nil
	}
	rules := policy.NewLiveSet(func(context.Context) (string, []byte, error) {
		text, err := os.ReadFile(config.PolicyFile)
		return config.PolicyFile, text, err
	}, policy.Options{Directory: directory(config.Groups), Routes: []string{}, UnknownFields: policy.OptionalFields})
	_, err := rules.Reload(context.Background())
	return rules, err
}

func providers(config Config) ([]provider.Provider, error) {
	graphs := slices.Clone(config.Graphs)
	if config.Dialog != nil && config.Dialog.Machine.HandOver {
		person, err := runs.HandOver()
		if err != nil {
			return nil, err
		}
		graphs = append(graphs, person)
	}
	list := slices.Clone(config.Providers)
	if len(graphs) > 0 {
		own, err := inproc.New(graphs...)
		if err != nil {
			return nil, fmt.Errorf("executor: Config.Graphs: %w", err)
		}
		list = append(list, own)
	}
	if len(list) == 0 {
		return nil, errors.New("executor: Config.Graphs is empty: without a graph nothing can run")
	}
	return list, nil
}

func openDialog(config *DialogConfig, parts embedded.Parts) (*conversation.Handler, error) {
	if config == nil {
		return nil, nil
	}
	person := ""
	if config.Machine.HandOver {
		person = "inproc:" + runs.HandOverGraph
	}
	connected, err := runs.New(runs.Config{Executor: parts.Executor, Graph: config.Graph, Assistants: config.Assistants, Input: config.Input, Person: person})
	if err != nil {
		return nil, err
	}
	return conversation.New(conversation.Config{
		Store: encrypted.New(parts.Store, parts.Sealer), Runs: connected, Assistants: connected.Assistants(), Machine: conversation.Machine(config.Machine), Model: config.Model, Language: config.Language, Retention: config.Retention,
	})
}

// groupDirectory is the directory of Config.Groups.
type groupDirectory struct{ desk.StaticDirectory }

func directory(groups map[string][]string) groupDirectory {
	d := groupDirectory{desk.StaticDirectory{}}
	for name, people := range groups {
		d.StaticDirectory["group:"+name] = people
	}
	return d
}

// Members lists a name for the rules that name it.
func (d groupDirectory) Members(name string) ([]string, bool) {
	if user, ok := strings.CutPrefix(name, "user:"); ok {
		return []string{user}, true
	}
	people, known := d.StaticDirectory[name]
	return people, known
}
