/** How much the log of a service says; each says less than the one before. */
export const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const
export type LogLevel = (typeof logLevels)[number]

/** The port without --port, which is no default of the option: it conflicts with --socket. */
export const defaultPort = 4010

/** Where the service and its admin port listen, unless they are told otherwise. */
export const loopback = '127.0.0.1'
