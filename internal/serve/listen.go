package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	stdlog "log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/fermata-go/fermata/internal/config"
	"github.com/fermata-go/fermata/internal/logsample"
)

// httpListener is a listener with its HTTP server.
type httpListener struct {
	url      string
	listener net.Listener
	http     *http.Server
}

// maxHeader is the maximum size of request headers in bytes.
const maxHeader = 16 << 10

// listen opens a listener with the configured timeouts. Responses have no timeout: event streams
// last as long as their runs.
func listen(key, addr string, h http.Handler, c config.Listen, log *slog.Logger) (httpListener, error) {
	secure, err := certificate(c.TLS, log)
	if err != nil {
		return httpListener{}, err
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return httpListener{}, fmt.Errorf("%s: %w", key, err)
	}
	scheme := "http://"
	if secure != nil {
		scheme = "https://"
	}
	return httpListener{url: scheme + browserURL(listener.Addr()), listener: listener, http: &http.Server{
		Handler: h, TLSConfig: secure, ReadHeaderTimeout: c.ReadHeaderTimeout, ReadTimeout: c.ReadTimeout, IdleTimeout: c.IdleTimeout, MaxHeaderBytes: maxHeader,
		ErrorLog: stdlog.New(&connLog{log: log}, "", 0),
	}}, nil
}

// connLog receives the log lines of net/http. Any client can cause TLS handshake errors, so they
// are rate-limited.
type connLog struct {
	log        *slog.Logger
	handshakes logsample.Sampler
}

// Write logs one line.
func (d *connLog) Write(line []byte) (int, error) {
	text := strings.TrimSuffix(string(line), "\n")
	if !strings.HasPrefix(text, "http: TLS handshake error") {
		d.log.Warn(text)
	} else if left, ok := d.handshakes.Allow(); ok {
		d.log.Warn(text, "suppressed", left)
	}
	return len(line), nil
}

// browserURL returns a URL that a browser on this machine can open.
func browserURL(addr net.Addr) string {
	if tcp, ok := addr.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		return fmt.Sprintf("localhost:%d", tcp.Port)
	}
	return addr.String()
}

func (d httpListener) serve() error {
	var err error
	if d.http.TLSConfig != nil {
		err = d.http.ServeTLS(d.listener, "", "")
	} else {
		err = d.http.Serve(d.listener)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// close stops accepting requests, and closes connections that do not end in time.
func (d httpListener) close(ctx context.Context) {
	if d.http.Shutdown(ctx) != nil {
		_ = d.http.Close()
	}
	_ = d.listener.Close() // if it never served
}

// certificate returns the TLS configuration; nil without files.
func certificate(c config.TLS, log *slog.Logger) (*tls.Config, error) {
	if c.CertFile == "" {
		return nil, nil
	}
	r := &reloadingCert{files: c, log: log}
	if _, err := r.current(nil); err != nil {
		return nil, fmt.Errorf("listen.tls: %w", err)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: r.current}, nil
}

// reloadingCert is a certificate that is reloaded when its file changes, so that a renewal needs no
// restart.
type reloadingCert struct {
	files config.TLS
	log   *slog.Logger

	mu         sync.Mutex
	modified   time.Time
	loaded     *tls.Certificate
	lastLogged string // the last logged error
}

// current returns the certificate. If the new file cannot be read, for example because it is being
// written, the old certificate stays. The error is logged: otherwise a failed renewal would go
// unnoticed until the old certificate expires.
func (r *reloadingCert) current(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	info, err := os.Stat(r.files.CertFile)
	if err == nil && !info.ModTime().Equal(r.modified) {
		var pair tls.Certificate
		if pair, err = tls.LoadX509KeyPair(r.files.CertFile, r.files.KeyFile); err == nil {
			r.loaded, r.modified = &pair, info.ModTime()
		}
	}
	if r.loaded == nil {
		return nil, err
	}
	r.logChange(err)
	return r.loaded, nil
}

// logChange logs a new error or a recovery. The lock must be held.
func (r *reloadingCert) logChange(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	switch {
	case text == r.lastLogged:
	case text != "":
		r.log.Error("new certificate cannot be loaded; keeping the old one", "key", "listen.tls", "expires", expiry(r.loaded), "err", err)
	default:
		r.log.Info("certificate loaded again", "key", "listen.tls", "expires", expiry(r.loaded))
	}
	r.lastLogged = text
}

// expiry returns the expiry time of a certificate.
func expiry(c *tls.Certificate) time.Time {
	if c.Leaf == nil {
		return time.Time{}
	}
	return c.Leaf.NotAfter
}
