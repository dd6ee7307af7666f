import { styleFor, warn, writeAnswer } from '../../output/output.js'
import { toJson } from '../../plant/json.js'
import { PlantsError } from '../../platform/errors.js'
import { visible } from '../../platform/escape.js'
import type { Io } from '../../platform/io.js'
import { parseLife } from '../../platform/values.js'
import { openExistingStore, openStoreWithTokens } from '../../stores/registry.js'
import type { Token, TokenStore } from '../../stores/store.js'
import { resolveSettings } from '../context.js'
import { type GlobalFlags, parseId } from '../flags.js'
import type { Settings } from '../settings.js'
import type { TokenFlags } from './service-spec.js'

export async function create(flags: TokenFlags, io: Io): Promise<void> {
  const settings = await resolveSettings(flags, io)
  const createdAt = new Date(io.time())
  const expiresAt = flags.expires === undefined ? undefined : new Date(io.time() + parseLife('--expires', flags.expires))
  const { digestOf, newToken } = await import('../../server/tokens.js')
  const token = newToken()
  const store = await openStoreWithTokens(settings.store, settings.opening)
  try {
    const added = await store.tokens.add(digestOf(token), { note: flags.note, createdAt, expiresAt })
    const hint = `Revoke it with: plants tokens revoke ${added.id}${settings.storeFlag}`
    await writeAnswer(io, settings.errors === 'json' ? `${toJson({ ...fieldsOf(added), token })}\n` : `${token}\n`, hint)
    if (io.stdout.isTerminal && settings.errors === 'text')
      await warn(io, `This is token ${added.id}${expiresAt ? `, valid until ${dateOf(expiresAt)}` : ''}. It is shown only now`, settings)
  } finally {
    await store.close()
  }
}

export async function list(flags: GlobalFlags, io: Io): Promise<void> {
  const settings = await resolveSettings(flags, io)
  await withTokens(settings, async (tokens) => {
    let isEmpty = true
    const write = await pageWriter(settings, io)
    for await (const page of tokens?.list() ?? []) {
      isEmpty = false
      await writeAnswer(io, write(page), 'Run it again')
    }
    if (isEmpty) await warn(io, `No tokens. Make one with: plants tokens create${settings.storeFlag}`, settings)
  })
}

export async function revoke(text: string, flags: GlobalFlags, io: Io): Promise<void> {
  const settings = await resolveSettings(flags, io)
  const id = parseId('id', text)
  await withTokens(settings, async (tokens) => {
    const token = await tokens?.revoke(id, new Date(io.time()))
    if (!token) {
      const hint = `See which there are with: plants tokens list${settings.storeFlag}`
      throw new PlantsError('notFound', `No token has the id ${id} in ${settings.store.name}`, { hint })
    }
    await writeAnswer(
      io,
      settings.output === 'json'
        ? `${toJson(fieldsOf(token))}\n`
        : `Revoked token ${id}${token.note === undefined ? '' : ` (${visible(token.note)})`}\n`,
      'It is revoked',
    )
  })
}

/** Opens the store for its tokens; when there is none yet, none is made. */
async function withTokens(settings: Settings, action: (tokens: TokenStore | undefined) => Promise<void>): Promise<void> {
  const existing = await openExistingStore(settings.store, settings.opening)
  if (!existing) return action(undefined)
  await existing.close()
  const store = await openStoreWithTokens(settings.store, settings.opening)
  try {
    await action(store.tokens)
  } finally {
    await store.close()
  }
}

/** What turns a page into text: the rows of a table for people, lines of JSON for programs. */
async function pageWriter(settings: Settings, io: Io): Promise<(page: Token[]) => string> {
  if (settings.output === 'json') return (page) => page.map((token) => `${toJson(fieldsOf(token))}\n`).join('')
  const { textTable } = await import('../../output/table.js')
  const table = textTable(['ID', 'NOTE', 'CREATED', 'EXPIRES', 'STATE'], await styleFor(settings.colors(io.stdout)), io.stdout)
  return (page) =>
    table(
      page.map((token) => [
        String(token.id),
        visible(token.note ?? ''),
        dateOf(token.createdAt),
        dateOf(token.expiresAt),
        stateOf(token, io),
      ]),
    )
}

function fieldsOf({ id, note, createdAt, expiresAt, revokedAt }: Token): Record<string, unknown> {
  return { id, note, createdAt, expiresAt, revokedAt }
}

function dateOf(date: Date | undefined): string {
  return date === undefined ? '' : date.toISOString().replace(/:\d\d\.\d+Z$/, 'Z')
}

function stateOf({ revokedAt, expiresAt }: Token, io: Io): string {
  if (revokedAt !== undefined) return 'revoked'
  return expiresAt !== undefined && expiresAt.getTime() <= io.time() ? 'expired' : 'valid'
}
