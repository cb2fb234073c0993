//go:build !unix

package lockfile

// Try does nothing on this platform, so concurrent use is not detected.
func Try(string) (release func(), err error) { return func() {}, nil }

// TryDir does nothing on this platform.
func TryDir(string) (release func(), err error) { return func() {}, nil }
