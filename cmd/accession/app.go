package main

import (
	"context"
	"io"

	"github.com/accession/accession/client"
)

// App is the program with everything it takes from outside.
type App struct {
	Args                               []string // without the program's name
	Getenv                             func(string) string
	Environ                            []string // NAME=value; only to warn of names that nobody reads
	Stdin                              io.Reader
	Stdout, Stderr                     io.Writer
	StdoutIsTerminal, StderrIsTerminal bool

	// Screen is how large the terminal is; nil: 80 columns, 24 lines.
	Screen func() (columns, lines int)
	// ReadSecret asks on the terminal for what must not be shown; nil where there is none.
	ReadSecret func(prompt string) (string, error)

	// retry is what client commands retry with; tests make it quick.
	retry client.Retry
}

// Run carries out the command line and returns the exit code (exit.go).
func (a *App) Run(ctx context.Context) int {
	root := newRootCommand(a)
	root.SetArgs(a.Args)
	root.SetIn(a.Stdin)
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	if ctx.Err() != nil {
		err = interrupted(err)
	}
	a.fail(err)
	return exitCode(err)
}
