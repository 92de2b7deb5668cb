// Command accession is the service and its first client.
//
//	accession upload FILE --org ORG ─► client.Uploader ─► the service ─► six gates, followed live
//
// Each subcommand has a file of its own, named after it. app.go is the testable main; root.go lists the commands.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	go func() {
		<-ctx.Done()
		stop() // a second Ctrl-C ends the process at once
	}()
	app := &App{
		Args: os.Args[1:], Getenv: os.Getenv, Environ: os.Environ(), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		StdoutIsTerminal: term.IsTerminal(int(os.Stdout.Fd())),
		StderrIsTerminal: term.IsTerminal(int(os.Stderr.Fd())),
		Screen: func() (int, int) {
			columns, lines, err := term.GetSize(int(os.Stderr.Fd()))
			if err != nil || columns < 1 || lines < 1 {
				return 80, 24
			}
			return columns, lines
		},
	}
	if term.IsTerminal(int(os.Stdin.Fd())) {
		app.ReadSecret = func(prompt string) (string, error) { return askSecret(ctx, prompt) }
	}
	os.Exit(app.Run(ctx))
}

// askSecret asks on the terminal, without showing what is typed. Ctrl-C leaves the terminal as it was.
func askSecret(ctx context.Context, prompt string) (string, error) {
	terminal := int(os.Stdin.Fd())
	before, err := term.GetState(terminal)
	if err != nil {
		return "", err
	}
	fmt.Fprint(os.Stderr, prompt)
	type answer struct {
		text []byte
		err  error
	}
	typed := make(chan answer, 1)
	go func() {
		text, err := term.ReadPassword(terminal)
		typed <- answer{text, err}
	}()
	defer fmt.Fprintln(os.Stderr)
	select {
	case a := <-typed:
		return string(a.text), a.err
	case <-ctx.Done():
		return "", errors.Join(ctx.Err(), term.Restore(terminal, before))
	}
}
