package app

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

	"github.com/fermata-go/fermata/app/config"
	"github.com/fermata-go/fermata/internal/logsample"
)

// httpListener is a listener with what is behind it.
type httpListener struct {
	url      string
	listener net.Listener
	http     *http.Server
}

// maxHeader is how many bytes the headers of a request may have.
const maxHeader = 16 << 10

// listen opens a door, with the patience of a server on the open network: none for those who do not speak. Nothing limits how long an answer
// takes: event streams last as long as their runs.
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

// connLog takes what net/http has to say. Anybody can open a connection and say nothing that makes sense, so that is not a line each time.
type connLog struct {
	log        *slog.Logger
	handshakes logsample.Sampler
}

// Write takes one line.
func (d *connLog) Write(line []byte) (int, error) {
	text := strings.TrimSuffix(string(line), "\n")
	if !strings.HasPrefix(text, "http: TLS handshake error") {
		d.log.Warn(text)
	} else if left, ok := d.handshakes.Allow(); ok {
		d.log.Warn(text, "leftOut", left)
	}
	return len(line), nil
}

// browserURL is an address that a browser on this machine can open.
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

// close lets nobody in any more, and lets those go who do not go by themselves.
func (d httpListener) close(ctx context.Context) {
	if d.http.Shutdown(ctx) != nil {
		_ = d.http.Close()
	}
	_ = d.listener.Close() // if it never served
}

// certificate is how the server proves who it is; nil without files.
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

// reloadingCert is a certificate that changes when its file does, so that whoever renews it need not end the server.
type reloadingCert struct {
	files config.TLS
	log   *slog.Logger

	mu         sync.Mutex
	modified   time.Time
	loaded     *tls.Certificate
	lastLogged string // what was said last of a file that cannot be used
}

// current returns the certificate. One that cannot be read, because it is just being written, changes nothing. But it is told: with a renewal that failed for
// good, the next thing that anybody would notice is that the old one has expired.
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

// tell logs what is new about the files. It is called with the lock held.
func (r *reloadingCert) logChange(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	switch {
	case text == r.lastLogged:
	case text != "":
		r.log.Error("a new certificate cannot be used; the old one stays", "key", "listen.tls", "until", expiry(r.loaded), "err", err)
	default:
		r.log.Info("the certificate can be used again", "key", "listen.tls", "until", expiry(r.loaded))
	}
	r.lastLogged = text
}

// expiry is until when a certificate is good.
func expiry(c *tls.Certificate) time.Time {
	if c.Leaf == nil {
		return time.Time{}
	}
	return c.Leaf.NotAfter
}
