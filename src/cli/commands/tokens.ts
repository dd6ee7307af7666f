import { writeAnswer, writeResult, writeTable } from '../../output/output.js'
import { toJson } from '../../plant/exact-json.js'
import { idFromText } from '../../plant/plant.js'
import { malformed, PlantsError } from '../../platform/errors.js'
import { escapeControlChars } from '../../platform/escape.js'
import { parseLife, parseText } from '../../platform/values.js'
import { defaultRights, type Token, type TokenStore } from '../../stores/common/store.js'
import { openExistingStore, ownSchemeOf } from '../../stores/registry.js'
import { resolveSettings, type Settings } from '../context.js'
import { allowOption, type CommandDefinition, defineCommand } from '../define-command.js'

const create = defineCommand({
  name: 'create',
  description: 'Create a token and print it. It is not shown again.',
  options: [
    { flags: '--note <text>', description: 'what the token is for' },
    {
      flags: '--expires <duration>',
      description: 'lifetime, such as 90d or 12h; by default, until it is revoked',
      parse: parseLife,
    },
    allowOption('rights of the token', defaultRights.join()),
  ],
  async run({ flags }, io) {
    const settings = await resolveSettings(flags, io)
    const { note, expires, allow } = flags
    const createdAt = new Date(io.time())
    const expiresAt = expires === undefined ? undefined : new Date(io.time() + expires)
    const { digestOf, newToken } = await import('../../server/authenticator.js')
    const token = newToken()
    const store = await ownSchemeOf(settings.store).open(settings.store, settings.storeOptions)
    try {
      const added = await store.tokens.add(digestOf(token), { note, rights: allow, createdAt, expiresAt })
      const hint = `Revoke it with: plants tokens revoke ${added.id}${settings.storeFlag}`
      await writeAnswer(io, settings.errors === 'json' ? `${toJson({ ...added, token })}\n` : `${token}\n`, hint)
      const validity = expiresAt ? `, valid until ${expiresAt.toISOString().slice(0, 16)}Z` : ''
      if (io.stdout.isTerminal && settings.errors === 'text')
        await settings.warn(`This is token ${added.id}${validity}. It is not shown again`)
    } finally {
      await store.close()
    }
  },
})

const list = defineCommand({
  name: 'list',
  description: 'List the notes, rights and expiry dates of the tokens, but not the tokens themselves.',
  async run({ flags }, io) {
    const settings = await resolveSettings(flags, io)
    await withTokens(settings, async (tokens) => {
      const cellsOf = (token: Token) => [
        String(token.id),
        escapeControlChars(token.note ?? ''),
        dayOf(token.createdAt),
        dayOf(token.expiresAt),
        token.revokedAt ? 'revoked' : (token.expiresAt?.getTime() ?? Infinity) > io.time() ? 'valid' : 'expired',
        token.rights.join(','),
      ]
      const titles = ['ID', 'NOTE', 'CREATED', 'EXPIRES', 'STATE', 'RIGHTS']
      const total = await writeTable(io, settings, tokens?.list() ?? [], titles, cellsOf)
      if (total === 0) await settings.warn(`No tokens. Create one with: plants tokens create${settings.storeFlag}`)
    })
  },
})

const revoke = defineCommand({
  name: 'revoke',
  description: 'Revoke a token. A running plants serve rejects it within a second.',
  arguments: [
    {
      name: '<token>',
      description: 'its id or its note, as shown by plants tokens list',
      values: 'token',
      parse: parseText,
    },
  ],
  async run({ args: [name], flags }, io) {
    const settings = await resolveSettings(flags, io)
    await withTokens(settings, async (tokens) => {
      const token = tokens && (await revokeNamed(name, tokens, new Date(io.time()), settings.storeFlag))
      if (!token) {
        const message = `No token has the id or the note ${JSON.stringify(name)} in ${settings.store.name}`
        const hint = `List the tokens with: plants tokens list${settings.storeFlag}`
        throw new PlantsError('notFound', message, { hint })
      }
      const note = token.note === undefined ? '' : ` (${escapeControlChars(token.note)})`
      await writeResult(io, settings, token, `Revoked token ${token.id}${note}`, 'The token was revoked')
    })
  },
})

export const tokens: CommandDefinition = {
  name: 'tokens',
  description: 'Manage the bearer tokens that plants serve accepts. The store contains only their SHA-256 hashes.',
  commands: [create, list, revoke],
  examples: [
    'plants tokens create --note laptop --expires 90d',
    'plants tokens create --note dashboard --allow read',
    'plants tokens revoke laptop',
  ],
}

/** A store that does not exist is not created: the action gets undefined. */
async function withTokens(
  { store: address, storeOptions }: Settings,
  action: (tokens: TokenStore | undefined) => Promise<void>,
): Promise<void> {
  const scheme = ownSchemeOf(address)
  const existing = await openExistingStore(address, storeOptions)
  if (!existing) return action(undefined)
  await existing.close()
  const store = await scheme.open(address, storeOptions)
  try {
    await action(store.tokens)
  } finally {
    await store.close()
  }
}

/** By id or note. Throws `malformed` if several that are not revoked have the note. */
async function revokeNamed(name: string, tokens: TokenStore, at: Date, storeFlag: string): Promise<Token | undefined> {
  const id = idFromText(name)
  const ofId = id === undefined ? undefined : await tokens.revoke(id, at)
  if (ofId) return ofId
  const ids: bigint[] = []
  for await (const page of tokens.list())
    for (const token of page) if (token.note === name && !token.revokedAt) ids.push(token.id)
  const [other] = ids
  if (ids.length < 2) return other === undefined ? undefined : tokens.revoke(other, at)
  const hint = `Use an id: plants tokens revoke ID${storeFlag}`
  throw malformed(`${ids.length} tokens have the note ${JSON.stringify(name)}: ${ids.slice(0, 10).join(', ')}`, hint)
}

function dayOf(date: Date | undefined): string {
  return date?.toISOString().slice(0, 10) ?? ''
}
