import { type Credential, findToken, noToken, savedToken, tokenVariable } from '../auth/credentials.js'
import { refuseExposed } from '../auth/exposure.js'
import { findPassword, noPassword, type Password, redactPassword } from '../auth/password.js'
import { failureOf } from '../auth/token.js'
import { malformed } from '../platform/errors.js'
import type { Io } from '../platform/io.js'
import type { PostgresAddress, RemoteAddress } from '../stores/address.js'
import type { TokenVerdict } from '../stores/http/types.js'
import { takesToken } from '../stores/registry.js'
import type { Settings } from './context.js'
import { accessTo, loginTo } from './store-access.js'

/** The credential that a store takes: the token of a service, or the password of a database. */
export type CredentialKind = ReturnType<typeof credentialKindOf>

/** `savedAt` is of a saved one, and `expires` of a token from a command that says so; both are in ISO 8601. */
export interface CredentialSource {
  source: Credential['source'] | Password['source']
  savedAt?: string | undefined
  expires?: string | undefined
}

export function credentialKindOf(store: RemoteAddress | PostgresAddress, settings: Settings, io: Io) {
  return takesToken(store) ? tokenFor(store, settings, io) : passwordFor(store, settings, io)
}

function tokenFor(store: RemoteAddress, settings: Settings, io: Io) {
  const { storeName, tokenCommand, storeFlag, storeOptions } = settings
  return {
    noun: 'token' as const,
    /** the credential in a text that was typed or piped */
    clean: (text: string) => text.trim(),
    failureOf,
    /** Throws `malformed` where a saved one would not be used. */
    refuseUnusable: () => {
      const hint = `Renew the token where the command takes it from, or forget the command: plants config unset stores.${storeName}.token-command`
      if (tokenCommand !== undefined) throw malformed(`${storeName} takes its token from a command`, hint)
      refuseExposed(store, settings, io)
    },
    redact: (token: string) => void io.secrets.add(token),
    check: async (token: string): Promise<TokenVerdict> => {
      const { checkToken } = await import('../stores/http/check-token.js')
      return checkToken(store, await accessTo(store, settings, io, { token, source: 'file', place: 'this login' }), storeOptions)
    },
    hint: 'Copy the token again, or ask for a new one where the service is run: plants tokens create',
    find: async (): Promise<(CredentialSource & { token: string; password?: string }) | undefined> => {
      const { place, ...found } = (await findToken(store, settings, io)) ?? {}
      return 'token' in found ? found : undefined
    },
    /** Of another store than the one of this run. No token command is run. */
    findSource: async (): Promise<CredentialSource | undefined> => {
      if (tokenCommand !== undefined) return { source: 'command' }
      const saved = savedToken(settings.file.saved, store.name)
      return saved && { source: 'file', savedAt: saved.savedAt }
    },
    missing: () => noToken(store, storeFlag),
    /** what there is besides a saved one */
    others: () => [
      ...(tokenVariable(io) ? ['PLANTS_TOKEN is still set'] : []),
      ...(tokenCommand === undefined ? [] : [`${storeName} still has its token command`]),
    ],
  }
}

function passwordFor(store: PostgresAddress, settings: Settings, io: Io) {
  const { storeFlag, storeOptions } = settings
  const find = async (): Promise<(CredentialSource & { token?: string; password: string }) | undefined> => {
    const found = await findPassword(store, settings, io)
    const password = store.hosts.map((host) => found?.of(host)).find((text) => text !== undefined)
    return found && password !== undefined ? { password, source: found.source, savedAt: found.savedAt } : undefined
  }
  return {
    noun: 'password' as const,
    clean: (text: string) => text.replace(/\r?\n$/, ''),
    /** PostgreSQL itself takes up to 1000 bytes or so; a line break comes from a slip. */
    failureOf: (text: string): string | undefined => {
      if (text === '') return 'is empty'
      if (Buffer.byteLength(text) > 1000) return 'is longer than 1000 bytes'
      return /[\0\r\n]/.test(text) ? 'holds a line break, or U+0000' : undefined
    },
    refuseUnusable: () => {},
    redact: (password: string) => redactPassword(password, store, io),
    check: async (password: string): Promise<TokenVerdict> => {
      const { checkPassword } = await import('../stores/postgres/inspect.js')
      return checkPassword(store, { ...storeOptions, login: () => loginTo(store, settings, io, password) })
    },
    hint: 'Give it again, or ask who runs the database for another',
    find,
    findSource: find,
    missing: () => noPassword(store, storeFlag),
    others: () => [
      ...(store.password === undefined ? [] : ['There is still a password in the address']),
      ...(io.env['PGPASSWORD'] ? ['PGPASSWORD is still set'] : []),
    ],
  }
}
