package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The help is written by hand: cobra's templates would keep text/template, and with it every method of the program, in the binary.

const (
	helpColumns = 80
	halfColumns = 39 // the overview has two columns, one space between them
	nameColumns = 14
)

// overviewTitles are the groups of the overview: on its left, then on its right.
var overviewTitles = [2][]struct{ group, title string }{
	{{groupDocuments, "Documents"}, {groupOrganization, "Organizations"}, {groupMachine, "This computer"}},
	{{groupCare, "Evidence and care (admin)"}, {groupService, "Service"}},
}

// briefs are what the overview says of a command, in at most 22 characters. Its Short is for its own help.
var briefs = map[string]string{
	"upload":        "send files, resume",
	"watch":         "follow uploads live",
	"status":        "show an upload's gates",
	"context":       "read a context",
	"withdraw":      "delete an upload",
	"receipt":       "show, verify receipts",
	"agreement":     "what --accept means",
	"quota":         "show or set quota",
	"organizations": "list organizations",
	"credentials":   "issue, rotate, revoke",
	"retention":     "set days of keeping",
	"webhooks":      "set, test, replay",
	"profile":       "keep URL, credentials",
	"completion":    "for bash, zsh, fish",
	"state":         "queue, scanner health",
	"audit":         "search, verify chains",
	"canary":        "find who leaked a text",
	"rescan":        "scan stored files anew",
	"resume":        "go on after FAILED",
	"fsck":          "compare rows, objects",
	"keys":          "rotate storage keys",
	"serve":         "run the service",
	"config":        "check, show settings",
	"doctor":        "find and mend faults",
	"backup":        "copy an installation",
	"restore":       "bring a copy back",
	"migrate-store": "move to other stores",
	"version":       "print the version",
	"help":          "tell of a command",
}

const overviewEnd = `
accession COMMAND --help tells of one. Environment: ACCESSION_URL, _ORG, _TOKEN,
_ADMIN_TOKEN, _PROFILE; NO_COLOR. Exit codes: 0 ok, 1 failure, 2 usage,
3 not authorised, 4 not found, 5 conflict, 6 rejected, 7 unavailable, 130 ^C.
`

// handwrittenHelp gives root and all below it this file's help.
func handwrittenHelp(root *cobra.Command) {
	root.SetUsageFunc(func(cmd *cobra.Command) error { return writeUsage(cmd.OutOrStderr(), cmd) })
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		out := cmd.OutOrStdout()
		if !cmd.HasParent() {
			writeOverview(out, cmd)
			return
		}
		about := cmd.Long
		if about == "" {
			about = cmd.Short
		}
		fmt.Fprintf(out, "%s\n\n", filled(about))
		_ = writeUsage(out, cmd) // an output that is gone is no fault of the help
	})
}

// writeOverview fits 80 columns and 24 lines.
func writeOverview(out io.Writer, root *cobra.Command) {
	fmt.Fprintf(out, "%s\n\n", root.Long)
	var columns [2][]string
	for side, groups := range overviewTitles {
		for _, g := range groups {
			columns[side] = append(columns[side], g.title)
			for _, cmd := range root.Commands() {
				if cmd.GroupID == g.group && (cmd.IsAvailableCommand() || cmd.Name() == "help") {
					columns[side] = append(columns[side], fmt.Sprintf("  %-*s %s", nameColumns, cmd.Name(), brief(cmd)))
				}
			}
		}
	}
	for i := range max(len(columns[0]), len(columns[1])) {
		var left, right string
		if i < len(columns[0]) {
			left = columns[0][i]
		}
		if i < len(columns[1]) {
			right = columns[1][i]
		}
		fmt.Fprintln(out, strings.TrimRight(fmt.Sprintf("%-*s %s", halfColumns+1, left, right), " "))
	}
	fmt.Fprint(out, overviewEnd)
}

// filled breaks each paragraph anew, between words, at helpColumns. A line that begins with a space stays as it is.
func filled(text string) string {
	var b strings.Builder
	column := 0
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		if line == "" || line[0] == ' ' {
			if column > 0 {
				b.WriteByte('\n')
			}
			b.WriteString(line + "\n")
			column = 0
			continue
		}
		for _, word := range strings.Fields(line) {
			wide := utf8.RuneCountInString(word)
			switch {
			case column > 0 && column+1+wide > helpColumns:
				b.WriteByte('\n')
				column = 0
			case column > 0:
				b.WriteByte(' ')
				column++
			}
			b.WriteString(word)
			column += wide
		}
	}
	return strings.TrimRight(b.String(), "\n")
}

func brief(cmd *cobra.Command) string {
	if text, ok := briefs[cmd.Name()]; ok {
		return text
	}
	short := cmd.Short
	if room := halfColumns - nameColumns - 3; len(short) > room {
		short = short[:strings.LastIndex(short[:room], " ")+1]
	}
	return strings.TrimSpace(short)
}

func writeUsage(out io.Writer, cmd *cobra.Command) error {
	var b strings.Builder
	b.WriteString("Usage:\n")
	own := false // flags, beside --help: what has commands below it does something itself as well
	cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) { own = own || flag.Name != "help" && cmd.HasParent() })
	if cmd.Runnable() && (own || !cmd.HasAvailableSubCommands()) {
		fmt.Fprintf(&b, "  %s\n", cmd.UseLine())
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "  %s COMMAND [flags]\n", cmd.CommandPath())
	}
	if cmd.HasExample() {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", strings.TrimRight(cmd.Example, "\n"))
	}
	if cmd.HasAvailableSubCommands() {
		b.WriteString("\nCommands:\n")
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() {
				fmt.Fprintf(&b, "  %-*s %s\n", cmd.NamePadding(), sub.Name(), sub.Short)
			}
		}
	}
	if flags := cmd.Flags(); flags.HasAvailableFlags() {
		fmt.Fprintf(&b, "\nFlags:\n%s\n", strings.TrimRight(flags.FlagUsagesWrapped(helpColumns), "\n "))
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\n%s COMMAND --help tells of one.\n", cmd.CommandPath())
	}
	_, err := io.WriteString(out, b.String())
	return err
}
