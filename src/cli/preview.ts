import { type Credential, locateToken } from '../auth/credentials.js'
import { addLookupHint, describePlant, quoteIfNeeded, styleFor, writeResult } from '../output/output.js'
import { escapeUnsafe } from '../plant/json.js'
import type { NewPlant } from '../plant/plant.js'
import { escapeControlChars } from '../platform/escape.js'
import type { Io } from '../platform/io.js'
import type { Access } from '../stores/common/access.js'
import type { Address, RemoteAddress } from '../stores/common/address.js'
import { ownSchemeOf, takesToken } from '../stores/registry.js'
import type { Settings } from './context.js'
import { accessTo } from './store-access.js'

interface CreateRequest {
  idempotencyKey: string | undefined
  /** with settings that run no token command */
  readPlant(settings: Settings): Promise<NewPlant>
}

/** Shows what a create would do, and throws the same errors. Writes and sends nothing, shows no token, and runs no token command. */
export async function showPreview(create: CreateRequest, settings: Settings, io: Io): Promise<void> {
  const { store } = settings
  return takesToken(store) ? previewAtService(store, create, settings, io) : previewInOwnStore(store, create, settings, io)
}

async function previewInOwnStore(store: Address, create: CreateRequest, settings: Settings, io: Io): Promise<void> {
  const { idempotencyKey } = create
  const plant = await create.readPlant(settings)
  const { exists, creates } = await ownSchemeOf(store)
    .previewCreate(store, plant, { idempotencyKey }, settings.storeOptions)
    .catch((error: unknown) => {
      throw addLookupHint(error, plant.id, settings)
    })
  const what = describePlant(plant, await styleFor(settings.colors(io.stdout)))
  const sentence = creates
    ? `Would plant ${what} in ${quoteIfNeeded(store.name)}${exists ? '' : ', which would be created'}`
    : `Would plant nothing: the idempotency key has already created ${what}`
  const fields = { dryRun: true, ...plant, store: store.name, exists, creates, idempotencyKey }
  await writeResult(io, { output: settings.output }, fields, sentence, 'Nothing was created')
}

async function previewAtService(store: RemoteAddress, create: CreateRequest, settings: Settings, io: Io): Promise<void> {
  const found = locateToken(store, settings, io)
  const token = { token: '***', source: found?.source ?? 'variable', place: found?.place ?? 'no source yet' } as const
  let previewed: Promise<Access> | undefined
  const preview = async () => (previewed ??= accessTo(store, settings, io, token))
  const plant = await create.readPlant({ ...settings, storeOptions: { ...settings.storeOptions, access: preview } })
  const access = await preview()
  const source = found?.source ?? 'none'
  const { describeCreate } = await import('../stores/http/request.js')
  const request = describeCreate(store, access, plant, create.idempotencyKey)
  const proxy = access.proxy && new URL(access.proxy).host
  const socket = store.socketPath
  const what = describePlant(plant, await styleFor(settings.colors(io.stdout)))
  const place = socket === undefined ? '' : ` over the socket ${escapeControlChars(socket)}`
  const through = proxy === undefined ? '' : ` through the proxy ${proxy}`
  const text = [
    `Would plant ${what} at ${quoteIfNeeded(store.name)}\n`,
    `${request.method} ${escapeControlChars(request.url)}${place}${through}`,
    ...Object.entries(request.headers).map(
      ([name, value]) => `${name}: ${value}${name === 'authorization' ? ` (${tokenWords[source]})` : ''}`,
    ),
    `\n${escapeUnsafe(request.body)}`,
  ].join('\n')
  const { authorization, ...headers } = request.headers
  const shown = source === 'none' ? { ...request, headers } : request
  const fields = { dryRun: true, ...plant, store: store.name, token: source, socket, proxy, request: shown }
  await writeResult(io, { output: settings.output }, fields, text, 'Nothing was created')
}

const tokenWords: Record<Credential['source'] | 'none', string> = {
  variable: 'from PLANTS_TOKEN',
  command: 'from the token command',
  file: 'which was saved',
  none: 'there is no token yet: set PLANTS_TOKEN, or save one with plants auth login',
}
