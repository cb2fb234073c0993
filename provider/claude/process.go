package claude

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fermata-go/fermata/internal/lockfile"
	"github.com/fermata-go/fermata/internal/store"
)

// Time limits.
const (
	// hookTimeout is how long the CLI waits for the provider. If it gives up it denies the call,
	// but the ledger may have recorded it already.
	hookTimeout = 10 * time.Minute
	// pipeTimeout is how long a process that has ended may leave its output open.
	pipeTimeout = 5 * time.Second
)

// process runs one process of the CLI. It returns the changed parts of the session.
func (p *Provider) process(ctx context.Context, s *state, t *turn) (store.Delta, error) {
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-ctx.Done():
		return store.Delta{}, ctx.Err()
	}
	dir, err := newDirs(p.config.TempDir, t.graph.WorkDir)
	if err != nil {
		return store.Delta{}, &CLIError{"the temporary directory cannot be created", err}
	}
	defer dir.remove()
	sessions := filepath.Join(dir.config, "projects", projectName(dir.work))
	if err := errors.Join(os.MkdirAll(sessions, 0o700), s.restore(sessions, t.session)); err != nil {
		return store.Delta{}, &CLIError{"the session cannot be restored", err}
	}
	ctx, t.cancel = context.WithCancelCause(ctx)
	defer t.cancel(nil)
	server, err := serve(ctx, t)
	if err != nil {
		return store.Delta{}, &CLIError{"the hook cannot be served", err}
	}
	defer server.close()
	arguments, err := p.arguments(dir, server, t)
	if err != nil {
		return store.Delta{}, err
	}
	environment, err := p.environment(dir)
	if err != nil {
		return store.Delta{}, err
	}
	cmd := exec.CommandContext(ctx, p.config.Command, arguments...)
	cmd.Dir, cmd.Env = dir.work, environment
	cmd.Stdin = strings.NewReader(t.prompt) // not an argument, which other users could see
	stderr := &head{limit: 4 << 10}
	cmd.Stdout, cmd.Stderr = &lines{each: t.line}, stderr
	cmd.WaitDelay = pipeTimeout
	isolate(cmd)
	// With the process's thread the operating system also ends its children.
	runtime.LockOSThread()
	err = cmd.Run()
	runtime.UnlockOSThread()
	killGroup(cmd)
	server.close()
	if err := t.finish(ctx, err, stderr.String()); err != nil {
		return store.Delta{}, err
	}
	if t.deferred == nil {
		return store.Delta{}, nil
	}
	if err := endWithMarker(filepath.Join(sessions, t.session+".jsonl"), t.deferred.ID); err != nil {
		return store.Delta{}, &CLIError{"the session cannot be read", err}
	}
	return s.collect(sessions, t.session)
}

// projectName returns the name of the directory with the sessions of a working directory.
func projectName(work string) string { return notInProject.ReplaceAllString(work, "-") }

var notInProject = regexp.MustCompile(`[^a-zA-Z0-9]`)

// arguments returns the arguments of the CLI. Settings are in files, because arguments are visible
// to other users.
func (p *Provider) arguments(dir *dirs, server *server, t *turn) ([]string, error) {
	g := t.graph
	settings, err := dir.write("settings.json", server.settings())
	if err != nil {
		return nil, err
	}
	mcp, err := dir.write("mcp.json", server.mcpServers(g))
	if err != nil {
		return nil, err
	}
	arguments := []string{
		"--print", "--output-format", "stream-json", "--verbose",
		"--setting-sources", "", "--settings", settings, "--strict-mcp-config", "--mcp-config", mcp,
		"--tools", strings.Join(g.builtInTools(), ","),
	}
	if slices.Contains(g.Ask, askUserQuestion) { // the tool exists only with a person to ask
		arguments = append(arguments, "--permission-prompt-tool", "stdio")
	} else {
		arguments = append(arguments, "--permission-prompts", "none")
	}
	if !slices.Contains(g.builtInTools(), "Skill") { // the flag would disable the tool
		// a prompt such as /init would run commands of the CLI
		arguments = append(arguments, "--disable-slash-commands")
	}
	if g.Model != "" {
		arguments = append(arguments, "--model", g.Model)
	}
	if g.SystemPrompt != "" {
		arguments = append(arguments, "--append-system-prompt", g.SystemPrompt)
	}
	if g.MaxTurns > 0 {
		arguments = append(arguments, "--max-turns", strconv.Itoa(g.MaxTurns))
	}
	if t.resumes {
		return append(arguments, "--resume", t.session), nil
	}
	return append(arguments, "--session-id", t.session), nil
}

// environment returns the environment of the CLI. It inherits no credentials and no settings.
func (p *Provider) environment(dir *dirs) ([]string, error) {
	list := baseEnvironment(dir)
	if p.config.BaseURL != "" {
		list = append(list, "ANTHROPIC_BASE_URL="+p.config.BaseURL)
	}
	if p.config.APIKeyFile != "" {
		key, err := os.ReadFile(p.config.APIKeyFile)
		if err != nil {
			return nil, &CLIError{"the API key file cannot be read", err}
		}
		list = append(list, "ANTHROPIC_API_KEY="+string(bytes.TrimSpace(key)))
	}
	return append(list, p.config.Environment...), nil
}

// baseEnvironment returns the environment of every process of the CLI.
func baseEnvironment(dir *dirs) []string {
	list := []string{
		// otherwise @PATH in a prompt becomes the file, whatever the tools are
		"CLAUDE_CODE_DISABLE_ATTACHMENTS=1",
		"HOME=" + dir.home, "CLAUDE_CONFIG_DIR=" + dir.config, "TMPDIR=" + dir.temp,
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1",
		"NO_PROXY=127.0.0.1",
	}
	for _, name := range []string{"PATH", "LANG", "LC_ALL", "TZ"} {
		if value, ok := os.LookupEnv(name); ok {
			list = append(list, name+"="+value)
		}
	}
	return list
}

// dirs are the private directories of one process.
type dirs struct {
	root, config, home, temp, work string
	unlock                         func()
}

// dirPrefix is the prefix of the names of private directories.
const dirPrefix = "fermata-claude-"

func newDirs(parent, work string) (*dirs, error) {
	root, err := os.MkdirTemp(parent, dirPrefix)
	if err != nil {
		return nil, err
	}
	d := &dirs{root: root, config: filepath.Join(root, "config"), home: filepath.Join(root, "home"), temp: filepath.Join(root, "tmp"), work: work}
	d.unlock, err = lockfile.TryDir(root)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(root))
	}
	if work == "" {
		d.work = filepath.Join(root, "work")
	}
	for _, dir := range []string{d.config, d.home, d.temp, d.work} {
		if dir == work {
			continue
		}
		if err := os.Mkdir(dir, 0o700); err != nil {
			return nil, errors.Join(err, d.remove())
		}
	}
	return d, nil
}

func (d *dirs) write(name string, content any) (string, error) {
	data, err := json.Marshal(content)
	if err != nil {
		return "", err
	}
	at := filepath.Join(d.root, name)
	return at, os.WriteFile(at, data, 0o600)
}

func (d *dirs) remove() error {
	defer d.unlock()
	return os.RemoveAll(d.root)
}

// sweepAfter is the age after which an unlocked directory belongs to a process that was killed.
const sweepAfter = time.Minute

// sweep removes the private directories of processes of this user that were killed. Errors do not
// matter: the next provider tries again.
func sweep(parent string) {
	parent = cmp.Or(parent, os.TempDir())
	entries, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !entry.IsDir() || !strings.HasPrefix(entry.Name(), dirPrefix) || time.Since(info.ModTime()) < sweepAfter {
			continue
		}
		at := filepath.Join(parent, entry.Name())
		if unlock, err := lockfile.TryDir(at); err == nil {
			_ = os.RemoveAll(at)
			unlock()
		}
	}
}

// minVersion is the first version of the CLI that can defer calls.
var minVersion = [3]int{2, 1, 89}

// CheckCLI returns the version of the CLI, or why it cannot be used.
func (p *Provider) CheckCLI(ctx context.Context) (version string, err error) {
	dir, err := newDirs(p.config.TempDir, "")
	if err != nil {
		return "", err
	}
	defer dir.remove()
	cmd := exec.CommandContext(ctx, p.config.Command, "--version")
	cmd.Dir, cmd.Env, cmd.WaitDelay = dir.work, baseEnvironment(dir), pipeTimeout
	output, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("claude: the CLI cannot be started: %w", err)
	}
	version, _, _ = strings.Cut(strings.TrimSpace(string(output)), " ")
	var numbers [3]int
	if _, err := fmt.Sscanf(version, "%d.%d.%d", &numbers[0], &numbers[1], &numbers[2]); err != nil {
		return "", fmt.Errorf("claude: %q does not report a version: is it the Claude CLI?", filepath.Base(p.config.Command))
	}
	if slices.Compare(numbers[:], minVersion[:]) < 0 {
		return "", fmt.Errorf("claude: version %s of the CLI cannot defer calls; 2.1.89 or newer is necessary", version)
	}
	return version, nil
}

// lines calls a function for each line that is written to it. Lines may have megabytes.
type lines struct {
	each func(line []byte)
	rest []byte
}

func (w *lines) Write(data []byte) (int, error) {
	w.rest = append(w.rest, data...)
	for {
		line, rest, ok := bytes.Cut(w.rest, []byte("\n"))
		if !ok {
			return len(data), nil
		}
		w.each(line)
		w.rest = rest
	}
}

// head keeps the first bytes that are written to it.
type head struct {
	bytes.Buffer
	limit int
}

func (h *head) Write(data []byte) (int, error) {
	if room := h.limit - h.Len(); room > 0 {
		_, _ = h.Buffer.Write(data[:min(room, len(data))])
	}
	return len(data), nil
}

var _ io.Writer = (*head)(nil)
