package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fermata-go/fermata/internal/suggest"
	"github.com/fermata-go/fermata/internal/yamldoc"
)

// Source lists the sources of a configuration.
type Source struct {
	// File is a file; "" means none.
	File string
	// Environ is the environment, as returned by os.Environ.
	Environ []string
	// Flags are command line values by key. Empty ones are ignored.
	Flags map[string]string
}

// Load reads the configuration. All mistakes are returned in one [*InvalidError].
func Load(from Source) (*Config, error) {
	c := Default()
	c.from = make(map[string]string)
	var wrong mistakes
	if from.File != "" {
		data, err := os.ReadFile(from.File)
		if err != nil {
			wrong.add(from.File, "", "%v", cause(err))
			return nil, wrong.err()
		}
		c.readFile(filepath.Base(from.File), data, &wrong)
	}
	c.readEnv(from.Environ, &wrong)
	c.readFlags(from.Flags, &wrong)
	c.readSecretFiles(&wrong)
	c.readChannelFiles(&wrong)
	c.check(&wrong)
	return c, wrong.err()
}

// cause removes the path from a file error: it is printed once, and paths of a host should not be
// in forwarded logs.
func cause(err error) error {
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		return pathErr.Err
	}
	return err
}

// readEnv applies the environment. Empty variables are ignored.
func (c *Config) readEnv(environ []string, wrong *mistakes) {
	root := settings(c)
	known := make(map[string]setting)
	for _, s := range root.all() {
		known[env(s.path)] = s
	}
	names := slices.Sorted(maps.Keys(known))
	for _, entry := range environ {
		name, text, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, envPrefix) || text == "" {
			continue
		}
		s, ok := known[name]
		if !ok {
			// Other programs may use the prefix: Kubernetes sets such variables for every service
			// named fermata. So only names similar to a setting are reported.
			if similar := suggest.Closest(name, names, 2); similar != "" {
				c.Warnings = append(c.Warnings, fmt.Sprintf("%s is not a setting; did you mean %s?", name, similar))
			}
			continue
		}
		c.setText(s, name, text, wrong)
	}
}

func (c *Config) readFlags(flags map[string]string, wrong *mistakes) {
	root := settings(c)
	for _, s := range root.all() {
		if text, ok := flags[s.path]; ok && text != "" {
			c.setText(s, commandLine, text, wrong)
		}
	}
}

// setText sets a key from one text; list elements are separated by commas.
func (c *Config) setText(s setting, where, text string, wrong *mistakes) {
	before := len(*wrong)
	if _, ok := s.value.Addr().Interface().(mapping); ok {
		r := yamldoc.Reader{Report: func(_ int, field, text string) {
			wrong.add(where, strings.TrimSuffix(s.path+"."+field, "."), "%s", text)
		}}
		if document := r.Document([]byte(text)); !document.Missing() {
			s.read(document)
		}
	} else if err := s.setTexts(text); err != nil {
		wrong.add(where, s.path, "%v", err)
	}
	if len(*wrong) == before {
		c.from[s.path] = where
	}
}

// setTexts sets a key from the text of a list or of one value.
func (s setting) setTexts(text string) error {
	if !s.list() {
		return s.set([]string{text})
	}
	var texts []string
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			texts = append(texts, item)
		}
	}
	return s.set(texts)
}

// commandLine is the source of flags.
const commandLine = "the command line"

// rank orders the sources.
func rank(where string) int {
	switch {
	case where == "":
		return 0
	case where == commandLine:
		return 3
	case strings.HasPrefix(where, envPrefix):
		return 2
	}
	return 1
}

// readSecretFiles reads secrets from their files.
func (c *Config) readSecretFiles(wrong *mistakes) {
	refer := func(key, file string, set func(text string)) {
		fileKey := key + "File"
		if file == "" {
			return
		}
		switch value, reference := rank(c.from[key]), rank(c.from[fileKey]); {
		case value > reference:
			return
		case value == reference:
			wrong.add(c.from[fileKey], fileKey, "%s is also set (%s): set only one of them", key, c.from[key])
			return
		}
		text, err := readSecret(file)
		if err != nil {
			wrong.add(c.from[fileKey], fileKey, "%s: %v", file, err)
			return
		}
		set(text)
		c.from[key] = c.from[fileKey]
	}
	refer("store.url", c.Store.URLFile, func(text string) { c.Store.URL = Secret(text) })
	refer("auth.oidc.clientSecret", c.Auth.OIDC.ClientSecretFile, func(text string) { c.Auth.OIDC.ClientSecret = Secret(text) })
	refer("webhooks.secrets", c.Webhooks.SecretsFile, func(text string) { c.Webhooks.Secrets = secretLines(text) })
	refer("providers.langgraph.apiKey", c.Providers.LangGraph.APIKeyFile, func(text string) { c.Providers.LangGraph.APIKey = Secret(text) })
	refer("tracing.headers", c.Tracing.HeadersFile, func(text string) { c.Tracing.Headers = secretLines(text) })
}

// readSecret returns the content of a file. The error does not contain its path.
func readSecret(file string) (string, error) {
	data, err := os.ReadFile(file)
	text := strings.TrimSpace(string(data))
	if err == nil && text == "" {
		err = errors.New("the file is empty")
	}
	return text, cause(err)
}

func secretLines(text string) (list []Secret) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			list = append(list, Secret(line))
		}
	}
	return list
}

// check validates combinations of values.
func (c *Config) check(wrong *mistakes) {
	bad := func(key, format string, args ...any) { wrong.add(c.from[key], key, format, args...) }
	if err := checkAddr(c.Listen.Addr); err != nil {
		bad("listen.addr", "%v", err)
	}
	for _, network := range c.Listen.TrustedProxies {
		if _, err := netip.ParsePrefix(network); err != nil {
			bad("listen.trustedProxies", "%q is not a network, such as 10.0.3.0/24", network)
		}
	}
	if c.Metrics.Addr != Off {
		if err := checkAddr(c.Metrics.Addr); err != nil {
			bad("metrics.addr", "%v, nor is it off", err)
		} else if c.Metrics.Addr == c.Listen.Addr && !strings.HasSuffix(c.Listen.Addr, ":0") {
			bad("metrics.addr", "must differ from the address of the server")
		}
	}
	if t := c.Listen.TLS; (t.CertFile == "") != (t.KeyFile == "") {
		reply, missing := "listen.tls.certFile", "keyFile"
		if t.CertFile == "" {
			reply, missing = "listen.tls.keyFile", "certFile"
		}
		bad(reply, "%s is missing: set both or none", missing)
	}
	if err := CheckStore(c.Store.URL); err != nil {
		bad("store.url", "%v", err)
	}
	c.checkOIDC(bad)
	c.checkChannels(bad)
	if c.Audit.Sign.Dir != "" && c.Audit.Sign.Key == "" {
		bad("audit.sign.dir", "key is missing: nothing is signed without it")
	}
	if u, err := url.Parse(c.Tracing.Endpoint); c.Tracing.Endpoint != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		bad("tracing.endpoint", "%q is not an http or https URL", c.Tracing.Endpoint)
	}
	if c.Tracing.Sample > 1 {
		bad("tracing.sample", "%v is more than 1", c.Tracing.Sample)
	}
	for _, header := range c.Tracing.Headers {
		if name, value := header.Pair(); name == "" || value == "" {
			bad("tracing.headers", "a header must be \"Name: value\"")
		}
	}
	c.checkLangGraph(bad)
	c.Providers.Claude.check(bad)
	for _, secret := range c.Webhooks.Secrets {
		if _, text := secret.Webhook(); !strings.HasPrefix(text, "whsec_") {
			bad("webhooks.secrets", "a secret must begin with whsec_")
		}
	}
}

// checkLangGraph checks the address and the assistants; the server is not called.
func (c *Config) checkLangGraph(bad func(key, format string, args ...any)) {
	g := c.Providers.LangGraph
	if g.URL == "" {
		if len(g.Assistants) > 0 {
			bad("providers.langgraph.assistants", "url is missing")
		}
		return
	}
	if u, err := url.Parse(g.URL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.User != nil {
		bad("providers.langgraph.url", "it is not an http or https URL without a query and a user")
	}
	for _, entry := range g.Assistants {
		name, id, renamed := strings.Cut(entry, "=")
		if name == "" || strings.ContainsAny(name, ": /") || renamed && id == "" {
			bad("providers.langgraph.assistants", "%q is not NAME or NAME=ID", entry)
		}
	}
}

// checkOIDC checks that required values are set; they are not verified with the provider.
func (c *Config) checkOIDC(bad func(key, format string, args ...any)) {
	o := c.Auth.OIDC
	if o.Issuer == "" {
		if o.ClientID == "" && o.RedirectURL == "" && len(o.Roles) == 0 && len(o.ACR) == 0 && o.Audience == "" {
			return
		}
		for _, key := range []string{"clientID", "redirectURL", "roles", "acr", "audience"} {
			if key = "auth.oidc." + key; c.from[key] != "" {
				bad(key, "issuer is missing")
			}
		}
		return
	}
	if o.ClientID == "" {
		bad("auth.oidc.issuer", "clientID is missing")
	}
	if u, err := url.Parse(o.RedirectURL); err != nil || u.Host == "" || u.Path != "/signin/callback" {
		bad("auth.oidc.redirectURL", "%q is not https://HOST/signin/callback", o.RedirectURL)
	}
	if len(o.Roles) == 0 {
		bad("auth.oidc.roles", "is empty, so no sign-in could succeed")
	}
	if (o.Account == "") == (o.AccountClaim == "") {
		bad("auth.oidc.account", "set either account or accountClaim, not both")
	}
}

func checkAddr(addr string) error {
	_, port, err := net.SplitHostPort(addr)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil {
		return fmt.Errorf("%q is not HOST:PORT", addr)
	}
	return nil
}

// SQLiteScheme is the URL prefix of a SQLite store.
const SQLiteScheme = "sqlite:"

// CheckStore validates a store URL. The error does not contain the URL, which may contain a
// password.
func CheckStore(store Secret) error {
	if path, ok := strings.CutPrefix(store.Reveal(), SQLiteScheme); ok && path != "" {
		return nil
	}
	if u, err := url.Parse(store.Reveal()); err == nil && (u.Scheme == "postgres" || u.Scheme == "postgresql") {
		return nil
	}
	return errors.New("the store is neither sqlite:FILE nor postgres://…")
}
