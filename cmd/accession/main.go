// Command accession is the service and its first client.
//
//	accession upload FILE --org ORG ─► client.Uploader ─► the service ─► six gates, followed live
//
// Each subcommand has a file of its own, named after it. app.go is the testable main; root.go lists the commands.
package main

import (
	"context"
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
	}
	os.Exit(app.Run(ctx))
}
