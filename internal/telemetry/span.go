package telemetry

import (
	"context"
	"errors"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/accession/accession/internal/custody"
)

// Request begins the span of a request, in the trace of the traceparent sent where that is valid. own is the traceparent of the
// answer.
func (t *Traces) Request(ctx context.Context, requestID, sent string) (_ context.Context, own string, ended func(method, route, operation string, status int, code custody.Code)) {
	ctx = propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": sent})
	// The key stays out of the context that goes on: other spans have other ids.
	_, span := t.tracer.Start(context.WithValue(ctx, requestKey{}, requestID), "request", trace.WithSpanKind(trace.SpanKindServer),
		trace.WithAttributes(attribute.String("accession.request_id", requestID)))
	ctx = trace.ContextWithSpan(ctx, span)
	said := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, said)
	return ctx, said["traceparent"], func(method, route, operation string, status int, code custody.Code) {
		if method == "" {
			method = "_OTHER"
		}
		span.SetName(route)
		span.SetAttributes(attribute.String("http.request.method", method), attribute.String("http.route", route), attribute.Int("http.response.status_code", status))
		if operation != "" {
			span.SetAttributes(attribute.String("accession.operation", operation))
		}
		if code != "" {
			span.SetAttributes(attribute.String("error.type", string(code)))
		}
		if status >= http.StatusInternalServerError {
			span.SetStatus(codes.Error, string(code))
		}
		span.End()
	}
}

// Job begins the span of one claim of an upload, as a child of the request that made the work. apart is for work that has
// reasons of its own, maybe long after: a trace of its own, with a link to the request.
func (t *Traces) Job(ctx context.Context, lane string, attempt int, cause custody.Cause, apart bool) (_ context.Context, ended func()) {
	options := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(
		attribute.String("accession.lane", lane), attribute.Int("accession.attempt", attempt), attribute.String("accession.request_id", cause.RequestID))}
	if id, err := trace.TraceIDFromHex(cause.TraceID); err == nil {
		request := trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: spanOf(cause.RequestID), Remote: true})
		if apart {
			options = append(options, trace.WithNewRoot(), trace.WithLinks(trace.Link{SpanContext: request}))
		} else {
			ctx = trace.ContextWithSpanContext(ctx, request)
		}
	}
	_, span := t.tracer.Start(context.WithValue(ctx, jobKey{}, true), "job "+lane, options...)
	return trace.ContextWithSpan(ctx, span), func() { span.End() }
}

// Gate begins the span of one attempt of a gate. outcome is passed, rejected, unanswered or interrupted.
func (t *Traces) Gate(ctx context.Context, gate string) (_ context.Context, ended func(outcome string, err error)) {
	ctx, span := t.tracer.Start(ctx, "gate "+gate, trace.WithAttributes(attribute.String("accession.gate", gate)))
	return ctx, func(outcome string, err error) {
		span.SetAttributes(attribute.String("accession.outcome", outcome))
		fail(span, err)
		span.End()
	}
}

// Step begins the span of a call of another part, such as a database, where ctx belongs to a trace; elsewhere it does nothing.
// name and system are constants of the code.
func (t *Traces) Step(ctx context.Context, name, system string) (_ context.Context, ended func(err error)) {
	if !trace.SpanFromContext(ctx).IsRecording() {
		return ctx, func(error) {}
	}
	ctx, span := t.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attribute.String("accession.system", system)))
	return ctx, func(err error) {
		fail(span, err)
		span.End()
	}
}

// fail says that there is an error, and its code where it has one. Its text may hold what does not belong here.
func fail(span trace.Span, err error) {
	var refused *custody.Refusal
	var unanswered *custody.NoAnswer
	var said *custody.Error
	switch {
	case err == nil || errors.Is(err, custody.ErrNotFound):
	case errors.As(err, &refused): // a verdict is an answer
		span.SetAttributes(attribute.String("accession.code", refused.Code))
	case errors.As(err, &unanswered):
		span.SetAttributes(attribute.String("error.type", unanswered.Code))
		span.SetStatus(codes.Error, unanswered.Code)
	case errors.As(err, &said):
		span.SetAttributes(attribute.String("error.type", string(said.Code)))
	case errors.Is(err, context.Canceled):
		span.SetAttributes(attribute.String("error.type", "canceled"))
	default:
		span.SetAttributes(attribute.String("error.type", "_OTHER"))
		span.SetStatus(codes.Error, "")
	}
}
