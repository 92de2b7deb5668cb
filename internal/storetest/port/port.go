// Package port keeps ports for servers that tests start, and start again.
package port

import (
	"errors"
	"fmt"
	"syscall"
)

// Keep returns an address of this machine, HOST:PORT, that refuses connections until a server asks for it, and that the system gives to
// nobody else until free is called: a socket is bound there that does not listen.
func Keep() (address string, free func(), err error) {
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", nil, fmt.Errorf("keep a port: %w", err)
	}
	free = func() { _ = syscall.Close(socket) }
	err = errors.Join(syscall.SetsockoptInt(socket, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1), syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	if err == nil {
		var at syscall.Sockaddr
		if at, err = syscall.Getsockname(socket); err == nil {
			return fmt.Sprintf("127.0.0.1:%d", at.(*syscall.SockaddrInet4).Port), free, nil
		}
	}
	free()
	return "", nil, fmt.Errorf("keep a port: %w", err)
}
