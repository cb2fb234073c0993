package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/fermata-go/fermata/internal/config"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/desk/routefile"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/oncall"
	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/server"
	"github.com/fermata-go/fermata/internal/yamldoc"
)

// reloadInterval is how often the policy, routes and groups files are checked for changes.
const reloadInterval = 10 * time.Second

// policyFiles loads and reloads the policy, routes and groups files. They may change while the
// server runs; a file that cannot be loaded changes nothing.
type policyFiles struct {
	settings  config.Desk
	groups    *GroupsFile
	rules     *policy.LiveSet // nil: no policy
	routes    atomic.Pointer[map[string]desk.Route]
	channels  desk.Channels
	options   policy.Options
	lastCheck groupCheck // used only by watch
	status    atomic.Pointer[server.PolicyStatus]
}

// Status returns the problems of the current files.
func (f *policyFiles) Status() server.PolicyStatus {
	if now := f.status.Load(); now != nil {
		return *now
	}
	return server.PolicyStatus{}
}

// groupCheck is the result of checking a policy against groups.
type groupCheck struct {
	set    *policy.Set
	groups desk.StaticDirectory
	err    error
}

// GroupsFile is the directory of groups, read from a file.
type GroupsFile struct {
	file    string
	current atomic.Pointer[desk.StaticDirectory]
}

// Member reports whether a person is in a group now.
func (d *GroupsFile) Member(who, person string) (bool, error) {
	return d.current.Load().Member(who, person)
}

// Members lists a group, for the rules that name it.
func (d *GroupsFile) Members(name string) ([]string, bool) {
	if user, ok := strings.CutPrefix(name, "user:"); ok {
		return []string{user}, true
	}
	members, known := (*d.current.Load())[name]
	return members, known
}

// People lists a group, for notices.
func (d *GroupsFile) People(ctx context.Context, who string) ([]string, bool, error) {
	return d.current.Load().People(ctx, who)
}

// ReadGroups reads a groups file; without a file there are no groups.
func ReadGroups(file string) (*GroupsFile, error) {
	d := &GroupsFile{file: file}
	return d, d.load()
}

// load reads the file again.
func (d *GroupsFile) load() error {
	members := desk.StaticDirectory{}
	if d.file != "" {
		text, err := os.ReadFile(d.file)
		if err != nil {
			return err
		}
		if members, err = parseGroups(d.file, text); err != nil {
			return err
		}
	}
	d.current.Store(&members)
	return nil
}

// parseGroups parses a groups file: {groups: {dba: [ann, bob]}}.
func parseGroups(file string, text []byte) (desk.StaticDirectory, error) {
	members := desk.StaticDirectory{}
	return members, yamldoc.Read(file, text, func(document yamldoc.Node) {
		names, groups := document.Map("groups")["groups"].Keys()
		for i, name := range names {
			people := groups[i].Texts()
			if name == "" || slices.Contains(people, "") {
				groups[i].Reportf("empty name")
			}
			members["group:"+name] = people
		}
	})
}

// openPolicyFiles reads the files. If one cannot be used, the server does not start.
func openPolicyFiles(ctx context.Context, all *config.Config, channels desk.Channels) (*policyFiles, executor.DeskConfig, error) {
	c := all.Desk
	groups, err := ReadGroups(c.GroupsFile)
	if err != nil {
		return nil, executor.DeskConfig{}, fmt.Errorf("desk.groupsFile: %w", err)
	}
	f := &policyFiles{settings: c, groups: groups}
	schedules, err := openSchedules(all.OnCall, all.Webhooks.Allow)
	if err != nil {
		return nil, executor.DeskConfig{}, err
	}
	channels.Schedules = slices.Sorted(maps.Keys(schedules))
	f.channels = channels
	directory := groupDirectory{oncall.Directory{Groups: f.groups, Schedules: schedules}}
	d := executor.DeskConfig{Directory: directory, Environment: c.Environment, DiscardRulings: !c.KeepRulings}
	if channels.Serves(desk.NoticePage, desk.DefaultPage) {
		d.DefaultPage = []string{desk.DefaultPage}
	}
	if c.TimeZone != "" { // otherwise the policy defines it
		d.Zone, err = time.LoadLocation(c.TimeZone)
		if err != nil || d.Zone == time.Local {
			return nil, d, fmt.Errorf("desk.timeZone: unknown time zone %q", c.TimeZone)
		}
	}
	var noRoutes error
	if c.RoutesFile != "" {
		if d.Routes, err = ReadRoutes(c.RoutesFile, channels); err != nil {
			noRoutes = fmt.Errorf("desk.routesFile: %w", err)
		}
		f.routes.Store(&d.Routes)
		d.CurrentRoutes = func() map[string]desk.Route { return *f.routes.Load() }
	}
	if c.PolicyFile != "" {
		read := func(context.Context) (string, []byte, error) {
			text, err := os.ReadFile(c.PolicyFile)
			return c.PolicyFile, text, err
		}
		var routes []string // nil: the policy may name any
		if noRoutes == nil {
			routes = routeNames(d.Routes)
		}
		f.options = policy.Options{Directory: directory, Routes: routes, UnknownFields: policy.OptionalFields}
		f.rules = policy.NewLiveSet(read, f.options)
		if _, err := f.rules.Reload(ctx); err != nil {
			return nil, d, errors.Join(noRoutes, fmt.Errorf("desk.policyFile: %w", err))
		}
		d.Policy = f.rules
	}
	return f, d, noRoutes
}

// ReadRoutes reads the routes of a server that has these channels.
func ReadRoutes(file string, channels desk.Channels) (map[string]desk.Route, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	list, err := routefile.Parse(file, text, channels)
	if err != nil {
		return nil, err
	}
	routes := make(map[string]desk.Route, len(list))
	for _, r := range list {
		routes[r.Name] = r
	}
	return routes, nil
}

// routeNames returns the names of routes. The list is never nil: then a policy can name none.
func routeNames(routes map[string]desk.Route) []string {
	return slices.AppendSeq([]string{}, maps.Keys(routes))
}

// reloadRoutes reads the routes file again. Routes that the policy names must exist: otherwise the
// file changes nothing.
func (f *policyFiles) reloadRoutes(ctx context.Context, log *slog.Logger) error {
	if f.settings.RoutesFile == "" {
		return nil
	}
	routes, err := ReadRoutes(f.settings.RoutesFile, f.channels)
	if err != nil {
		return err
	}
	same := func(a, b desk.Route) bool { return a.Digest() == b.Digest() }
	if maps.EqualFunc(*f.routes.Load(), routes, same) {
		return nil
	}
	if f.rules != nil {
		options := f.options
		options.Routes = routeNames(routes)
		if _, err := f.rules.ReloadWith(ctx, options); err != nil {
			return fmt.Errorf("%s: %w", f.settings.RoutesFile, err)
		}
		f.options = options
	}
	f.routes.Store(&routes)
	log.Info("new routes in force", "routes", len(routes))
	f.warnOfChannels(log)
	return nil
}

// warnOfChannels logs which restricted requests go to channels, where they are only links.
func (f *policyFiles) warnOfChannels(log *slog.Logger) {
	routes := f.routes.Load()
	if f.rules == nil || routes == nil {
		return
	}
	for _, p := range f.rules.Current().LintChannels(func(route string) []string { return (*routes)[route].ChannelTargets() }) {
		log.Warn("a restricted request goes to a channel", "rule", p.Rule, "line", p.Line, "problem", p.Text)
	}
}

// watch reloads changed files until ctx ends.
func (f *policyFiles) watch(ctx context.Context, log *slog.Logger) {
	tick := time.NewTicker(reloadInterval)
	defer tick.Stop()
	reply := make(map[string]string)
	say := func(what string, err error) {
		text := ""
		if err != nil {
			text = err.Error()
		}
		if text != "" && text != reply[what] {
			log.Error(what, "err", err)
		}
		reply[what] = text
	}
	f.warnOfChannels(log)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		broken, misfit := f.reload(ctx, log)
		f.status.Store(&server.PolicyStatus{Rejected: broken != nil, Unsatisfiable: misfit != nil})
		say("policy, routes or groups file cannot be loaded; keeping the previous version", broken)
		say("groups have changed, and some rules cannot be satisfied; a server would not start with these files", misfit)
	}
}

// reload reads the files again. broken is a load error, and changes nothing. misfit means that
// rules require more than the new groups can give; the groups still apply, because people who left
// must lose their rights.
func (f *policyFiles) reload(ctx context.Context, log *slog.Logger) (broken, misfit error) {
	broken = errors.Join(f.groups.load(), f.reloadRoutes(ctx, log))
	if f.rules == nil {
		return broken, nil
	}
	change, err := f.rules.Reload(ctx)
	if change.Changed() {
		log.Info("new policy in force", "digest", change.After.Digest(), "version", change.After.Version(), "rules", len(change.After.Rules()))
		f.warnOfChannels(log)
	}
	now := groupCheck{set: change.After, groups: *f.groups.current.Load()}
	if f.lastCheck.set == now.set && maps.EqualFunc(f.lastCheck.groups, now.groups, slices.Equal) {
		return errors.Join(broken, err), f.lastCheck.err
	}
	_, now.err = policy.Load(f.settings.PolicyFile, []byte(now.set.Source()), f.options)
	f.lastCheck = now
	return errors.Join(broken, err), now.err
}
