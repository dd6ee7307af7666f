import { type Credential, findToken, noToken, tokenVariable } from '../auth/credentials.js'
import { exposureOf, refuseExposed } from '../auth/exposure.js'
import { findPassword, hidePassword, noPassword, type Password } from '../auth/password.js'
import { failureOf } from '../auth/token.js'
import { PlantsError } from '../platform/errors.js'
import type { Io } from '../platform/io.js'
import type { PostgresAddress, RemoteAddress } from '../stores/address.js'
import type { TokenVerdict } from '../stores/http/types.js'
import { takesToken } from '../stores/registry.js'
import type { Settings } from './settings.js'
import { accessTo, loginTo } from './store-access.js'

/** What a store lets one in with: a service with a token, a database with a password. */
export interface CredentialKind {
  noun: 'token' | 'password'
  /** the text as it counts, of one that was typed or piped */
  clean(text: string): string
  /** why a text can be none, or nothing */
  failureOf(text: string): string | undefined
  /** Throws `malformed` where it would be in vain to save one. */
  refuseUnusable(): void
  /** Keeps one from being shown. */
  hide(text: string): void
  /** Asks the store whether it lets one in with it. */
  check(text: string): Promise<TokenVerdict>
  /** what to do about one that is not accepted */
  hint: string
  /** The one that counts now, and where it comes from. Throws `unauthorized` when there is none. */
  find(): Promise<FoundCredential>
  /** what there is besides a saved one */
  others(): string[]
  /** what is not safe about the way to the store, though it may be meant so */
  exposure?: string | undefined
}

export type FoundCredential = { source: Credential['source'] | Password['source']; savedAt?: string | undefined } & Record<string, unknown>

export function credentialKindOf(store: RemoteAddress | PostgresAddress, settings: Settings, io: Io): CredentialKind {
  return takesToken(store) ? tokenFor(store, settings, io) : passwordFor(store, settings, io)
}

function tokenFor(store: RemoteAddress, settings: Settings, io: Io): CredentialKind {
  const { storeName, tokenCommand, storeFlag, storeOptions } = settings
  return {
    noun: 'token',
    clean: (text) => text.trim(),
    failureOf,
    refuseUnusable: () => {
      const hint = `Renew the token where the command takes it from, or forget the command: plants config unset stores.${storeName}.token-command`
      if (tokenCommand !== undefined) throw new PlantsError('malformed', `${storeName} takes its token from a command`, { hint })
      refuseExposed(store, settings, io)
    },
    hide: (token) => void io.secrets.add(token),
    check: async (token) => {
      const { checkToken } = await import('../stores/http/check-token.js')
      return checkToken(store, await accessTo(store, settings, io, { token, source: 'file' }), storeOptions)
    },
    hint: 'Copy the token again, or ask for a new one where the service is run: plants tokens create',
    find: async () => {
      const found = await findToken(store, settings, io)
      if (!found) throw noToken(store, storeFlag)
      return { ...found }
    },
    others: () => [
      ...(tokenVariable(io) ? ['PLANTS_TOKEN is still set'] : []),
      ...(tokenCommand === undefined ? [] : [`${storeName} still has its token command`]),
    ],
  }
}

function passwordFor(store: PostgresAddress, settings: Settings, io: Io): CredentialKind {
  const { storeFlag, storeOptions } = settings
  return {
    noun: 'password',
    clean: (text) => text.replace(/\r?\n$/, ''),
    failureOf: failureOfPassword,
    refuseUnusable: () => {},
    exposure: exposureOf(store),
    hide: (password) => hidePassword(password, store, io),
    check: async (password) => {
      const { checkPassword } = await import('../stores/postgres/inspect.js')
      return checkPassword(store, { ...storeOptions, login: () => loginTo(store, settings, io, password) })
    },
    hint: 'Give it again, or ask who runs the database for another',
    find: async () => {
      const found = await findPassword(store, settings, io)
      const password = found && store.hosts.map(found.of).find((text) => text !== undefined)
      if (!found || password === undefined) throw noPassword(store, storeFlag)
      return { password, source: found.source, savedAt: found.savedAt }
    },
    others: () => [
      ...(store.password === undefined ? [] : ['There is still a password in the address']),
      ...(io.env['PGPASSWORD'] ? ['PGPASSWORD is still set'] : []),
    ],
  }
}

/** PostgreSQL itself takes up to 1000 bytes or so; a line break comes from a slip. */
function failureOfPassword(text: string): string | undefined {
  if (text === '') return 'is empty'
  if (Buffer.byteLength(text) > 1000) return 'is longer than 1000 bytes'
  return /[\0\r\n]/.test(text) ? 'holds a line break, or U+0000' : undefined
}
