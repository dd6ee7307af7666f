import { type Credential, findToken, noToken, savedToken, tokenVariable } from '../auth/credentials.js'
import { refuseExposed } from '../auth/exposure.js'
import { findPassword, noPassword, type Password, redactPassword } from '../auth/password.js'
import { failureOf } from '../auth/token.js'
import { malformed } from '../platform/errors.js'
import type { Io } from '../platform/io.js'
import type { TokenVerdict } from '../stores/common/access.js'
import type { PostgresAddress, RemoteAddress } from '../stores/common/address.js'
import { takesToken } from '../stores/registry.js'
import type { Settings } from './context.js'
import { accessTo, loginTo } from './store-access.js'

/** The credential of a store: the token of a service, or the password of a database. */
export type CredentialKind = ReturnType<typeof credentialKindOf>

/** `savedAt` is set for a saved credential, and `expires` if a token command prints it; both are in ISO 8601. */
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
    /** extracts the credential from text that was typed or piped */
    clean: (text: string) => text.trim(),
    failureOf,
    /** Throws `malformed` if a saved credential would not be used. */
    refuseUnusable: () => {
      const hint = `Renew the token where the command reads it, or remove the command: plants config unset stores.${storeName}.token-command`
      if (tokenCommand !== undefined) throw malformed(`${storeName} gets its token from a command`, hint)
      refuseExposed(store, settings, io)
    },
    redact: (token: string) => void io.secrets.add(token),
    check: async (token: string): Promise<TokenVerdict> => {
      const { checkToken } = await import('../stores/http/check-token.js')
      return checkToken(store, await accessTo(store, settings, io, { token, source: 'file', place: 'this login' }), storeOptions)
    },
    hint: 'Copy the token again, or ask the operator of the service for a new one: plants tokens create',
    find: async (): Promise<(CredentialSource & { token: string; password?: string }) | undefined> => {
      const { place, ...found } = (await findToken(store, settings, io)) ?? {}
      return 'token' in found ? found : undefined
    },
    /** The source for a store other than the one of this run. Runs no token command. */
    findSource: async (): Promise<CredentialSource | undefined> => {
      if (tokenCommand !== undefined) return { source: 'command' }
      const saved = savedToken(settings.file.saved, store.name)
      return saved && { source: 'file', savedAt: saved.savedAt }
    },
    missing: () => noToken(store, storeFlag),
    /** other sources, which take precedence over a saved credential */
    others: () => [
      ...(tokenVariable(io) ? ['PLANTS_TOKEN is still set'] : []),
      ...(tokenCommand === undefined ? [] : [`${storeName} still has a token command`]),
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
    /** PostgreSQL accepts about 1000 bytes; a line break is a mistake. */
    failureOf: (text: string): string | undefined => {
      if (text === '') return 'is empty'
      if (Buffer.byteLength(text) > 1000) return 'is longer than 1000 bytes'
      return /[\0\r\n]/.test(text) ? 'contains a line break or U+0000' : undefined
    },
    refuseUnusable: () => {},
    redact: (password: string) => redactPassword(password, store, io),
    check: async (password: string): Promise<TokenVerdict> => {
      const { checkPassword } = await import('../stores/postgres/inspect.js')
      return checkPassword(store, { ...storeOptions, login: () => loginTo(store, settings, io, password) })
    },
    hint: 'Enter it again, or ask the administrator of the database for a new one',
    find,
    findSource: find,
    missing: () => noPassword(store, storeFlag),
    others: () => [
      ...(store.password === undefined ? [] : ['The address still contains a password']),
      ...(io.env['PGPASSWORD'] ? ['PGPASSWORD is still set'] : []),
    ],
  }
}
