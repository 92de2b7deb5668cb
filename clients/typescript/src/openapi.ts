// Generated from the served document: npm run generate. Do not edit.

export interface paths {
    "/api/v1/ai/access-policy": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** On which terms an AI may read */
        get: operations["getAccessPolicy"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/ai/capabilities": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What the service does, and where */
        get: operations["getCapabilities"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/organizations/{org_id}/ai-context/{upload_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the bounded AI context
         * @description Customer-submitted, unverified, untrusted text. Served only once its request record is durable.
         */
        get: operations["getAIContext"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/organizations/{org_id}/customer-uploads": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Submit a small text
         * @description Kept as it is, unverified. The six gates run inside the request: 201 means READY. Properties beyond those listed are ignored, unless one claims a verdict.
         */
        post: operations["createCustomerUpload"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/organizations/{org_id}/customer-uploads/{upload_id}/corrections": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Correct a customer upload
         * @description A new upload; the original is never overwritten. The original's context names it. A correction can be corrected too.
         */
        post: operations["createCorrection"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/organizations/{org_id}/customer-uploads/{upload_id}/external-review": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Attach a reference to an external review
         * @description A reference, not an evaluation: the upload's provenance and context stay as they are, and its context names the reference.
         */
        post: operations["attachExternalReview"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/organizations/{org_id}/partner-uploads/{upload_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Poll an upload
         * @description Metadata only, no content. Answers for every kind of upload.
         */
        get: operations["getPartnerUploadStatus"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/organizations/{org_id}/partner-uploads/{upload_id}/complete": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Close the part ledger and start processing
         * @description 202 is the start of processing, not its end: poll the status URL.
         */
        post: operations["completePartnerUploadByPath"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/organizations/{org_id}/partner-uploads/{upload_id}/parts/{part_number}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Send the next part
         * @description In order, each of part_size_bytes but the last. The same part again is accepted again.
         */
        put: operations["putPartnerUploadPartByPath"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/organizations/{org_id}/partner-uploads/{upload_id}/withdraw": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Withdraw an upload for good
         * @description Deletes payload, copies and derived context in every storage backend; a receipt and minimal audit metadata remain. 502 while a backend has not confirmed: the content is unreadable already, and the same request may be repeated.
         */
        post: operations["withdrawPartnerUpload"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/organizations/{org_id}/partner-uploads/complete": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Close the part ledger and start processing
         * @description 202 is the start of processing, not its end: poll the status URL.
         */
        post: operations["completePartnerUpload"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/organizations/{org_id}/partner-uploads/initiate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Reserve an upload
         * @description Quota is reserved until expires_at.
         */
        post: operations["initiatePartnerUpload"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/organizations/{org_id}/partner-uploads/part": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Send the next part
         * @description In order, each of part_size_bytes but the last. The same part again is accepted again.
         */
        put: operations["putPartnerUploadPart"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/organizations/{org_id}/quota": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Read the storage allowance */
        get: operations["getQuota"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/organizations/{org_id}/request-records": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List request records
         * @description A page with a next_cursor is not the whole.
         */
        get: operations["listRequestRecords"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/organizations/{org_id}/withdrawals/{withdrawal_receipt_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read a withdrawal receipt
         * @description What was deleted, where, how that was confirmed, what remains by design, and who had been served the context. signed_receipt is the same as a compact JWS (RFC 7515: EdDSA, typ accession-receipt+json), to be verified with the key set of /oauth/jwks.
         */
        get: operations["getWithdrawalReceipt"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/oauth/identity": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The organization and scopes bound to an access token */
        get: operations["getIdentity"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/oauth/jwks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The keys that access tokens and withdrawal receipts can be verified with
         * @description Without an envelope.
         */
        get: operations["getKeySet"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/oauth/token": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Exchange a tenant credential for an access token
         * @description OAuth 2.0 client credentials. The token is bound to the credential's organization, lives 10 minutes at most, and dies with the credential.
         */
        post: operations["issueAccessToken"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        AccessPolicy: {
            access_mode: string;
            bulk_export: boolean;
            /** @description The headers of requests and answers, and what each is for. Left out with include_headers=false. */
            headers?: {
                [key: string]: string;
            };
            /** @description Documentation and metadata are public; no upload or context ever is. */
            public_discovery: boolean;
            raw_payload_download: boolean;
        };
        Capabilities: {
            /** @description The version label of the contract. */
            api_contract: string;
            /** @description Empty with include_boundaries=false. */
            data_boundary: {
                [key: string]: boolean | string;
            };
            /** @description operationId to URL, which may hold {parameters}. */
            endpoints: {
                [key: string]: string;
            };
            status: string;
        };
        Completed: {
            /** @description With 202. */
            job?: components["schemas"]["Job"];
            pipeline_id: string;
            /** Format: int64 */
            sequence: number;
            sha256: string;
            status: string;
            upload_id: string;
        };
        Completion: {
            /** @description SHA-256 in lowercase hex. */
            client_file_sha256: string;
            parts: components["schemas"]["DeclaredPart"][];
            /** @description The upload. */
            upload_id: string;
        };
        CompletionByPath: {
            /** @description SHA-256 in lowercase hex. */
            client_file_sha256: string;
            parts: components["schemas"]["DeclaredPart"][];
            /** @description The upload. */
            upload_id?: string;
        };
        Consent: {
            /**
             * @constant
             * @enum {boolean}
             */
            accepted: true;
            /**
             * Format: date-time
             * @example 2026-11-20T09:30:00.000Z
             */
            accepted_at: string;
            ai_readable_use_consent_version: string;
            beta_agreement_version: string;
            /**
             * Format: email
             * @description One address, without a name.
             */
            consenting_user_email: string;
            consenting_user_id: string;
            /** @description SHA-256 in lowercase hex. */
            text_hash_sha256: string;
        };
        ConsentCapture: {
            /** Format: date-time */
            accepted_at: string;
            ai_readable_use_consent_version: string;
            beta_agreement_version: string;
            status: string;
            text_hash_sha256: string;
        };
        ContextRecalled: {
            /** @description Of every context that was served: drop what you hold of them. */
            context_sha256s: string[];
            /** @description That were served. */
            credential_ids: string[];
            /**
             * @description Tells it from uploadStatusChanged, which has no such field.
             * @enum {string}
             */
            event: "contextRecalled";
            /** @description Deduplicate on it. */
            event_id: string;
            org_id: string;
            /**
             * @description withdrawn: the upload is being deleted. rejected: it was scanned again and refused.
             * @enum {string}
             */
            reason: "withdrawn" | "rejected";
            /**
             * Format: date-time
             * @example 2026-11-20T09:30:00.000Z
             */
            recalled_at: string;
            request_id?: string;
            /**
             * Format: int64
             * @description How often the context was served; the request records name each.
             */
            servings: number;
            trace_id?: string;
            upload_id: string;
        };
        DeclaredPart: {
            /** Format: int64 */
            part_number: number;
            /** @description SHA-256 in lowercase hex. */
            sha256?: string;
            /** Format: int64 */
            size_bytes?: number;
        };
        EnvelopeAccessPolicy: {
            data: components["schemas"]["AccessPolicy"];
            request_id: string;
            trace_id: string;
        };
        EnvelopeCapabilities: {
            data: components["schemas"]["Capabilities"];
            request_id: string;
            trace_id: string;
        };
        EnvelopeCompleted: {
            data: components["schemas"]["Completed"];
            request_id: string;
            trace_id: string;
        };
        EnvelopeIdentity: {
            data: components["schemas"]["Identity"];
            request_id: string;
            trace_id: string;
        };
        EnvelopeInitiated: {
            data: components["schemas"]["Initiated"];
            request_id: string;
            trace_id: string;
        };
        EnvelopePartAccepted: {
            data: components["schemas"]["PartAccepted"];
            request_id: string;
            trace_id: string;
        };
        EnvelopeQuota: {
            data: components["schemas"]["Quota"];
            request_id: string;
            trace_id: string;
        };
        EnvelopeReceipt: {
            data: components["schemas"]["Receipt"];
            request_id: string;
            trace_id: string;
        };
        EnvelopeRecordPage: {
            data: components["schemas"]["RecordPage"];
            request_id: string;
            trace_id: string;
        };
        EnvelopeReviewAttached: {
            data: components["schemas"]["ReviewAttached"];
            request_id: string;
            trace_id: string;
        };
        EnvelopeServedContext: {
            data: components["schemas"]["ServedContext"];
            request_id: string;
            trace_id: string;
        };
        EnvelopeSubmitted: {
            data: components["schemas"]["Submitted"];
            request_id: string;
            trace_id: string;
        };
        EnvelopeUploadStatus: {
            data: components["schemas"]["UploadStatus"];
            request_id: string;
            trace_id: string;
        };
        EnvelopeWithdrawn: {
            data: components["schemas"]["Withdrawn"];
            request_id: string;
            trace_id: string;
        };
        Failure: {
            code: string;
            gate: string;
            message: string;
        };
        Gate: {
            /** @description Metadata only. */
            detail: {
                [key: string]: unknown;
            };
            /**
             * Format: date-time
             * @example 2026-11-20T09:30:00.000Z
             */
            finished_at?: string;
            /** @enum {string} */
            name: "integrity" | "quarantine" | "malware_scan" | "extraction" | "controlled_summary" | "ai_context";
            /**
             * Format: date-time
             * @example 2026-11-20T09:30:00.000Z
             */
            started_at?: string;
            /** @enum {string} */
            state: "pending" | "running" | "passed" | "rejected" | "failed";
        };
        Identity: {
            credential_id: string;
            /**
             * Format: date-time
             * @description Of the access token.
             * @example 2026-11-20T09:30:00.000Z
             */
            expires_at: string;
            org_id: string;
            role: string;
            /** @description Left out with include_scopes=false. */
            scopes?: string[];
        };
        Initiated: {
            /**
             * Format: date-time
             * @example 2026-11-20T09:30:00.000Z
             */
            expires_at: string;
            /**
             * Format: int64
             * @description Length of every part but the last, which may be shorter.
             */
            part_size_bytes: number;
            status: string;
            upload_id: string;
        };
        Job: {
            job_id: string;
            /** Format: int64 */
            poll_after_seconds: number;
            polling: components["schemas"]["Polling"];
            /** Format: uri */
            status_url: string;
        };
        KeySet: {
            /** @description By use, newest first; one that is not yet used to sign may be among them. */
            keys: components["schemas"]["PublicKey"][];
        };
        PartAccepted: {
            /** Format: int64 */
            part_number: number;
            /** Format: int64 */
            sequence: number;
            status: string;
            upload_id: string;
        };
        Polling: {
            /** @enum {string} */
            method: "GET";
            terminal_statuses: string[];
            /** Format: uri */
            url: string;
        };
        Problem: {
            /**
             * @description For programs. What each means stands with the responses that carry it.
             * @enum {string}
             */
            code: "invalid_request" | "consent_invalid" | "idempotency_key_invalid" | "part_length_invalid" | "content_digest_mismatch" | "verification_claim_forbidden" | "content_refused" | "authentication_required" | "credential_invalid" | "credential_not_bound" | "access_denied" | "insufficient_scope" | "visibility_denied" | "workspace_access_required" | "upload_not_found" | "context_not_ready" | "credential_not_found" | "signing_key_not_found" | "organization_not_found" | "receipt_not_found" | "webhook_not_found" | "canary_not_found" | "route_not_found" | "method_not_allowed" | "not_acceptable" | "request_timeout" | "idempotency_conflict" | "idempotency_in_progress" | "quota_exceeded" | "part_out_of_order" | "part_conflict" | "upload_identity_conflict" | "upload_not_receiving" | "upload_not_failed" | "credential_not_active" | "signing_key_in_use" | "reservation_expired" | "part_ledger_mismatch" | "digest_mismatch" | "length_required" | "body_too_large" | "media_type_unsupported" | "rate_limited" | "headers_too_large" | "internal_error" | "deletion_not_confirmed" | "service_unavailable" | "storage_full";
            details?: {
                fields?: {
                    /** @description JSON Pointer into the body; parameters as /path/…, /query/… or /header/… */
                    path: string;
                    /** @description What to change. */
                    reason: string;
                }[];
            };
            /** @description For a person; may change. */
            message: string;
            request_id: string;
            trace_id: string;
        };
        PublicKey: {
            /**
             * @description RS256 signs access tokens, EdDSA withdrawal receipts.
             * @enum {string}
             */
            alg: "RS256" | "EdDSA";
            /** @enum {string} */
            crv?: "Ed25519";
            /** @description Of an RSA key. */
            e?: string;
            kid: string;
            /** @enum {string} */
            kty: "RSA" | "OKP";
            /** @description Of an RSA key. */
            n?: string;
            /** @enum {string} */
            use: "sig";
            /** @description Of an Ed25519 key. */
            x?: string;
        };
        Quota: {
            /** Format: int64 */
            allowance_bytes: number;
            /** Format: int64 */
            available_bytes: number;
            org_id: string;
            /** Format: int64 */
            reserved_bytes: number;
            /** Format: int64 */
            upload_count: number;
            /** Format: int64 */
            used_bytes: number;
        };
        Receipt: {
            /** @description By backend; each confirmed. */
            deletions: components["schemas"]["ReceiptDeletion"][];
            /** Format: uri */
            issuer: string;
            /** @description How long the operator keeps backups of the key store, as an ISO 8601 duration. */
            key_backup_horizon: string;
            /**
             * Format: date-time
             * @description When that was confirmed.
             * @example 2026-11-20T09:30:00.000Z
             */
            key_destroyed_at: string;
            org_id: string;
            /**
             * Format: int64
             * @description Bytes of quota set free.
             */
            quota_bytes: number;
            /** @description As given; may be empty. */
            reason: string;
            /** @description The credentials that were served the context before; drop what was read with them. */
            recalled: components["schemas"]["ReceiptRecall"][];
            /** @description What is kept by design. */
            remains: components["schemas"]["ReceiptRemnant"][];
            /**
             * Format: date-time
             * @description The content is unreadable from then on.
             * @example 2026-11-20T09:30:00.000Z
             */
            requested_at: string;
            /** @description A credential_id, admin, or retention. */
            requested_by: string;
            /**
             * Format: date-time
             * @description The end of the retention that asked for it.
             * @example 2026-11-20T09:30:00.000Z
             */
            retained_until?: string;
            /** @description Of the file; left out where the upload was never whole. */
            sha256?: string;
            /** @description All of the above as a compact JWS. */
            signed_receipt: string;
            /**
             * Format: int64
             * @description Of the file; left out where the upload was never whole.
             */
            size_bytes?: number;
            upload_id: string;
            withdrawal_receipt_id: string;
            /**
             * Format: date-time
             * @example 2026-11-20T09:30:00.000Z
             */
            withdrawn_at: string;
        };
        ReceiptDeletion: {
            /** @description staging, quarantine, a mirror (mirror-1, …) or key_store. */
            backend: string;
            /**
             * Format: int64
             * @description Of their ciphertext; 0 for keys.
             */
            bytes: number;
            confirmation: string;
            /**
             * Format: date-time
             * @example 2026-11-20T09:30:00.000Z
             */
            confirmed_at: string;
            /**
             * Format: int64
             * @description Deleted in this withdrawal.
             */
            objects: number;
        };
        ReceiptRecall: {
            credential_id: string;
            /**
             * Format: date-time
             * @example 2026-11-20T09:30:00.000Z
             */
            last_served_at: string;
            /** Format: int64 */
            servings: number;
        };
        ReceiptRemnant: {
            /**
             * Format: date-time
             * @description Left out for what is kept without end.
             * @example 2026-11-20T09:30:00.000Z
             */
            until?: string;
            what: string;
        };
        RecordPage: {
            /** @description Empty on the last page. */
            next_cursor: string;
            /** @description Newest first. */
            records: components["schemas"]["RequestRecord"][];
            schema_disclaimer: string;
        };
        RequestRecord: {
            /** Format: int64 */
            bytes: number;
            context_sha256: string;
            credential_id: string;
            org_id: string;
            outcome: string;
            previous_hash: string;
            /**
             * Format: date-time
             * @description When the upload was withdrawn: drop what was served. Derived when read; no part of what record_hash is over.
             * @example 2026-11-20T09:30:00.000Z
             */
            recalled_at?: string;
            record_hash: string;
            record_id: string;
            request_id: string;
            /** Format: date-time */
            served_at: string;
            surface: string;
            trace_id: string;
            upload_id: string;
        };
        Reservation: {
            consent: components["schemas"]["Consent"];
            /**
             * @description The file's media type.
             * @example application/pdf
             */
            content_type: string;
            /** @description A name, not a path: at most 255 bytes of UTF-8. */
            filename: string;
            /** @enum {string} */
            importance?: "normal" | "important";
            material_type?: string;
            notes?: string;
            /** Format: int64 */
            size_bytes: number;
        };
        Review: {
            notes?: string;
            review_id: string;
            reviewer?: string;
            /**
             * Format: uri
             * @description An http or https address.
             * @example https://reviews.example/2026/17
             */
            source_url?: string;
        };
        ReviewAttached: {
            /** @enum {string} */
            evaluation_status: "not_evaluated";
            review_id: string;
            upload_id: string;
        };
        ServedContext: {
            context: {
                /** @description The first and the last line of text, and the random marker in them, which stands nowhere else in the context. */
                boundary?: {
                    begin?: string;
                    end?: string;
                    marker?: string;
                };
                /** @enum {string} */
                boundary_label?: "customer-submitted, unverified";
                /** @description Of this serving alone; an administrator finds its request record by it. */
                canary?: string;
                consent_capture?: Record<string, never>;
                /** @enum {string} */
                content_trust?: "untrusted";
                context_sha256?: string;
                corrections?: string[];
                /** @enum {string} */
                evaluation_status?: "not_evaluated";
                excerpts?: Record<string, never>[];
                external_references?: Record<string, never>[];
                /** Format: date-time */
                generated_at?: string;
                language?: string;
                media_type?: string;
                signals?: unknown;
                source?: Record<string, never>;
                summary?: string;
                /** @description Summary, excerpts and canary between the two lines of the boundary, to put before a model instead of summary and excerpts. */
                text?: string;
                token_count?: number;
                token_limit?: number;
                truncated?: boolean;
            };
            org_id: string;
            /** @description The request record of this serving. */
            record_id: string;
            upload_id: string;
            visibility: string;
        };
        StatusChange: {
            /** @description Deduplicate on it. */
            event_id: string;
            /**
             * Format: date-time
             * @example 2026-11-20T09:30:00.000Z
             */
            occurred_at: string;
            pipeline_id?: string;
            request_id?: string;
            /**
             * Format: int64
             * @description Immutable and increasing; recover gaps at the status operation.
             */
            sequence: number;
            /**
             * @description The gate.
             * @enum {string}
             */
            stage?: "integrity" | "quarantine" | "malware_scan" | "extraction" | "controlled_summary" | "ai_context";
            /** @enum {string} */
            status: "INITIATED" | "RECEIVING" | "PROCESSING" | "READY" | "REJECTED" | "FAILED" | "EXPIRED" | "WITHDRAWING" | "WITHDRAWN";
            trace_id?: string;
            upload_id: string;
        };
        Submission: {
            /** @description If sent, the organization of the path. */
            asserted_subject_org_id?: string;
            consent: components["schemas"]["Consent"];
            /**
             * @description A text media type, text/*, with no charset other than utf-8; default text/plain. Markup is read as the text that it is.
             * @example text/plain
             */
            content_type?: string;
            /**
             * @description A solution_company or third_party needs granted.
             * @enum {string}
             */
            customer_workspace_access?: "granted" | "not_granted";
            /** @description A name, not a path: at most 255 bytes of UTF-8. */
            filename: string;
            /** @description The text: at most 1 MiB of UTF-8. */
            payload: string;
            /** @description The organization. */
            uploader_organization_id?: string;
            /**
             * @description Default: customer.
             * @enum {string}
             */
            uploader_organization_type?: "customer" | "solution_company" | "third_party";
            /**
             * @description Who may read what: ai_readable_controlled and public_profile the whole context, private_summary_public the summary alone, internal_only nothing.
             * @enum {string}
             */
            visibility: "ai_readable_controlled" | "private_summary_public" | "internal_only" | "public_profile";
        };
        Submitted: {
            /** @description Redacted: never who consented. */
            consent_capture: components["schemas"]["ConsentCapture"];
            /** @enum {string} */
            evaluation_status: "not_evaluated";
            filename: string;
            org_id: string;
            /** @description Of a correction: the upload that it corrects, which stays as it is. */
            original_upload_id?: string;
            pipeline_id: string;
            /** Format: int64 */
            sequence: number;
            /** @enum {string} */
            status: "READY";
            upload_id: string;
        };
        TokenAnswer: {
            /** @description An RFC 9068 JWT, for Authorization: Bearer. */
            access_token: string;
            /**
             * Format: int64
             * @description Seconds.
             */
            expires_in: number;
            scope: string;
            /** @enum {string} */
            token_type: "Bearer";
        };
        TokenForm: {
            /** @description The credential_id. Here, or by HTTP Basic, not both. */
            client_id?: string;
            /** @description The credential's token. */
            client_secret?: string;
            /** @enum {string} */
            grant_type: "client_credentials";
            /** @description RFC 8707: a resource that the protected resource metadata names. May repeat. */
            resource?: string;
            /** @description A subset of the credential's scopes, separated by spaces; default: all. */
            scope?: string;
        };
        UploadStatus: {
            /**
             * Format: date-time
             * @example 2026-11-20T09:30:00.000Z
             */
            created_at: string;
            /** @enum {string} */
            evaluation_status: "not_evaluated";
            /**
             * Format: date-time
             * @example 2026-11-20T09:30:00.000Z
             */
            expires_at?: string;
            failure?: components["schemas"]["Failure"];
            filename: string;
            /** @description The six gates in order; left out with include_gates=false. */
            gates?: components["schemas"]["Gate"][];
            /**
             * Format: int64
             * @description Where an interrupted client resumes.
             */
            next_part_number: number;
            /** Format: int64 */
            part_size_bytes: number;
            pipeline_id: string;
            /** Format: int64 */
            received_bytes: number;
            /**
             * Format: date-time
             * @description Then it is withdrawn by itself; left out where the organization has no retention.
             * @example 2026-11-20T09:30:00.000Z
             */
            retained_until?: string;
            /**
             * Format: int64
             * @description Of the newest status event; only ever grows.
             */
            sequence: number;
            /** Format: int64 */
            size_bytes: number;
            /** @enum {string} */
            status: "INITIATED" | "RECEIVING" | "PROCESSING" | "READY" | "REJECTED" | "FAILED" | "EXPIRED" | "WITHDRAWING" | "WITHDRAWN";
            /**
             * Format: date-time
             * @example 2026-11-20T09:30:00.000Z
             */
            updated_at: string;
            upload_id: string;
            /** @description While WITHDRAWING. */
            withdrawal?: components["schemas"]["WithdrawalState"];
        };
        WithdrawalRequest: {
            /** @description Why; kept with the receipt. */
            reason?: string;
        };
        WithdrawalState: {
            /**
             * Format: int64
             * @description Deletions that were tried and not confirmed everywhere; it is tried again without end.
             */
            attempts: number;
            /**
             * Format: date-time
             * @description The content is unreadable from then on.
             * @example 2026-11-20T09:30:00.000Z
             */
            requested_at: string;
            /** @description The backends that did not confirm the newest attempt. */
            unconfirmed: string[];
            /**
             * Format: date-time
             * @description The first attempt that was not confirmed.
             * @example 2026-11-20T09:30:00.000Z
             */
            unconfirmed_since?: string;
        };
        Withdrawn: {
            deleted: boolean;
            /**
             * Format: int64
             * @description Bytes of quota set free.
             */
            quota_bytes: number;
            /** @enum {string} */
            status: "WITHDRAWN";
            upload_id: string;
            withdrawal_receipt_id: string;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    getAccessPolicy: {
        parameters: {
            query?: {
                include_headers?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EnvelopeAccessPolicy"];
                };
            };
        };
    };
    getCapabilities: {
        parameters: {
            query?: {
                include_boundaries?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EnvelopeCapabilities"];
                };
            };
        };
    };
    getAIContext: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The organization. */
                org_id: string;
                /** @description The upload. */
                upload_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EnvelopeServedContext"];
                };
            };
        };
    };
    createCustomerUpload: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The organization. */
                org_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Submission"];
            };
        };
        responses: {
            /** @description Created */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EnvelopeSubmitted"];
                };
            };
        };
    };
    createCorrection: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The organization. */
                org_id: string;
                /** @description The upload. */
                upload_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Submission"];
            };
        };
        responses: {
            /** @description Created */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EnvelopeSubmitted"];
                };
            };
        };
    };
    attachExternalReview: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The organization. */
                org_id: string;
                /** @description The upload. */
                upload_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Review"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EnvelopeReviewAttached"];
                };
            };
        };
    };
    getPartnerUploadStatus: {
        parameters: {
            query?: {
                include_gates?: boolean;
            };
            header?: never;
            path: {
                /** @description The organization. */
                org_id: string;
                /** @description The upload. */
                upload_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EnvelopeUploadStatus"];
                };
            };
        };
    };
    completePartnerUploadByPath: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The organization. */
                org_id: string;
                /** @description The upload. */
                upload_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CompletionByPath"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EnvelopeCompleted"];
                };
            };
            /** @description Accepted */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EnvelopeCompleted"];
                };
            };
        };
    };
    putPartnerUploadPartByPath: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The organization. */
                org_id: string;
                part_number: number;
                /** @description The upload. */
                upload_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/octet-stream": string;
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EnvelopePartAccepted"];
                };
            };
        };
    };
    withdrawPartnerUpload: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The organization. */
                org_id: string;
                /** @description The upload. */
                upload_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["WithdrawalRequest"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EnvelopeWithdrawn"];
                };
            };
        };
    };
    completePartnerUpload: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The organization. */
                org_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Completion"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EnvelopeCompleted"];
                };
            };
            /** @description Accepted */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EnvelopeCompleted"];
                };
            };
        };
    };
    initiatePartnerUpload: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The organization. */
                org_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Reservation"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EnvelopeInitiated"];
                };
            };
        };
    };
    putPartnerUploadPart: {
        parameters: {
            query: {
                part_number: number;
                /** @description The upload. */
                upload_id: string;
            };
            header?: never;
            path: {
                /** @description The organization. */
                org_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/octet-stream": string;
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EnvelopePartAccepted"];
                };
            };
        };
    };
    getQuota: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The organization. */
                org_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EnvelopeQuota"];
                };
            };
        };
    };
    listRequestRecords: {
        parameters: {
            query?: {
                /** @description next_cursor of the page before, with the same filters. */
                cursor?: string;
                limit?: number;
                /** @description The request_id of the answer that served a context. */
                request_id?: string;
                /** @description The upload. */
                upload_id?: string;
            };
            header?: never;
            path: {
                /** @description The organization. */
                org_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EnvelopeRecordPage"];
                };
            };
        };
    };
    getWithdrawalReceipt: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The organization. */
                org_id: string;
                /** @description The withdrawal_receipt_id of a withdrawal's answer. */
                withdrawal_receipt_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EnvelopeReceipt"];
                };
            };
        };
    };
    getIdentity: {
        parameters: {
            query?: {
                include_scopes?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EnvelopeIdentity"];
                };
            };
        };
    };
    getKeySet: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["KeySet"];
                };
            };
        };
    };
    issueAccessToken: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/x-www-form-urlencoded": components["schemas"]["TokenForm"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TokenAnswer"];
                };
            };
        };
    };
}
