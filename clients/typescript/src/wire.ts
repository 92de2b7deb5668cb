// Short names for the generated types of the wire.
import type { components } from "./openapi.js";

type Schemas = components["schemas"];
export type Consent = Schemas["Consent"];
export type Reservation = Schemas["Reservation"];
export type Initiated = Schemas["Initiated"];
export type PartAccepted = Schemas["PartAccepted"];
export type DeclaredPart = Schemas["DeclaredPart"];
export type Completed = Schemas["Completed"];
export type UploadStatus = Schemas["UploadStatus"];
export type Gate = Schemas["Gate"];
export type Withdrawn = Schemas["Withdrawn"];
export type Receipt = Schemas["Receipt"];
export type ServedContext = Schemas["ServedContext"];
export type RequestRecord = Schemas["RequestRecord"];
export type RecordPage = Schemas["RecordPage"];
export type Quota = Schemas["Quota"];
export type Submission = Schemas["Submission"];
export type Submitted = Schemas["Submitted"];
export type Review = Schemas["Review"];
export type ReviewAttached = Schemas["ReviewAttached"];
export type StatusChange = Schemas["StatusChange"];
export type ContextRecalled = Schemas["ContextRecalled"];
