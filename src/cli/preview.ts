import { addLookupHint, describePlant, quoteIfNeeded, styleFor, warn, writeAnswer } from '../output/output.js'
import { curlCommand, requestText } from '../output/request.js'
import { toJson } from '../plant/json.js'
import type { NewPlant } from '../plant/plant.js'
import { PlantsError } from '../platform/errors.js'
import { escapeControlCharsInLines } from '../platform/escape.js'
import type { Io } from '../platform/io.js'
import { proxyForCurl } from '../platform/proxy.js'
import type { OwnAddress, RemoteAddress } from '../stores/address.js'
import type { WireRequest } from '../stores/http/types.js'
import { kindNoun, previewCreate, takesToken } from '../stores/registry.js'
import type { Settings } from './settings.js'
import { type PreviewedAccess, previewAccess } from './store-access.js'

/** A create that is shown instead of done. */
export interface CreateRequest {
  idempotencyKey: string | undefined
  /** shown as the command of curl that would do it */
  isCurl: boolean
  /** gets the plant and checks it as a create does, with settings that start no token command */
  readPlant(settings: Settings): Promise<NewPlant>
}

/**
 * Shows what a create would do. Nothing is written or sent, no token is shown, and no command is started for it.
 *
 * @throws {PlantsError} what the create would, as far as it is known here; `malformed` for curl and a store that is no service
 */
export async function showPreview(draft: CreateRequest, settings: Settings, io: Io): Promise<void> {
  const { store } = settings
  if (takesToken(store)) await previewAtService(store, draft, settings, io)
  else if (draft.isCurl) throw noCurl(settings)
  else await previewHere(store, draft, settings, io)
}

function noCurl({ store, storeFlag }: Settings): PlantsError {
  const hint = `Serve it over HTTP with: plants serve${storeFlag}, and give the address that it prints with --store`
  return new PlantsError('malformed', `${store.name} is ${kindNoun(store.kind)}, where curl cannot create a plant`, { hint })
}

async function previewHere(store: OwnAddress, { idempotencyKey, readPlant }: CreateRequest, settings: Settings, io: Io): Promise<void> {
  const plant = await readPlant(settings)
  const { exists, creates } = await previewCreate(store, plant, { idempotencyKey }, settings.storeOptions).catch((error: unknown) => {
    throw addLookupHint(error, plant.id, settings)
  })
  const what = await describe(plant, settings, io)
  const sentence = creates
    ? `Would plant ${what} in ${quoteIfNeeded(store.name)}${exists ? '' : ', which would be made'}`
    : `Would plant nothing: the idempotency key has made ${what} already`
  const fields = { dryRun: true, ...plant, store: store.name, exists, creates, idempotencyKey }
  await show(settings.output === 'json' ? toJson(fields) : sentence, io)
}

async function previewAtService(store: RemoteAddress, draft: CreateRequest, settings: Settings, io: Io): Promise<void> {
  let foreseen: Promise<PreviewedAccess> | undefined
  const foresee = () => {
    foreseen ??= previewAccess(store, settings, io)
    return foreseen
  }
  const plant = await draft.readPlant({
    ...settings,
    storeOptions: { ...settings.storeOptions, access: async () => (await foresee()).access },
  })
  const found = await foresee()
  const { describeCreate } = await import('../stores/http/request.js')
  const request = describeCreate(store, found.access, plant, draft.idempotencyKey)
  if (draft.isCurl) await showCommand(request, store, found, settings, io)
  else await showRequest(request, plant, found, settings, io)
}

async function showCommand(
  request: WireRequest,
  address: RemoteAddress,
  found: PreviewedAccess,
  settings: Settings,
  io: Io,
): Promise<void> {
  const { caCert, timeout, errors, storeFlag } = settings
  const isProxySecure = found.access.proxy?.startsWith('https:') ?? false
  const way = { address, caCert: caCert?.path, timeout, proxy: proxyForCurl(address, io), isProxySecure }
  const command = curlCommand(request, way)
  if (io.stdout.isTerminal && errors !== 'json') checkForTerminal(command)
  const get = found.source === 'none' ? '' : `. Set it with: export PLANTS_TOKEN="$(plants auth token${storeFlag})"`
  if (found.source !== 'variable') await warn(io, `The command takes the token from PLANTS_TOKEN, which is not set${get}`, settings)
  await show(errors === 'json' ? toJson({ command }) : command, io) // other programs get it as it is, unless they have asked for JSON
}

/** It must stay as it is, so what would drive the terminal cannot be made visible there. */
function checkForTerminal(command: string): void {
  if (escapeControlCharsInLines(command) === command) return
  const hint = 'Write it into a file instead: plants create --curl … > create.sh'
  throw new PlantsError('malformed', 'The command holds a path with control characters, which a terminal would obey', { hint })
}

async function showRequest(sent: WireRequest, plant: NewPlant, found: PreviewedAccess, settings: Settings, io: Io): Promise<void> {
  const { store } = settings
  const { authorization: _, ...others } = sent.headers
  const request = found.source === 'none' ? { ...sent, headers: others } : sent
  const proxy = found.access.proxy && new URL(found.access.proxy).host
  if (settings.output === 'text') {
    const way = { token: tokenWords[found.source], socket: socketOf(store), proxy }
    return show(`Would plant ${await describe(plant, settings, io)} at ${quoteIfNeeded(store.name)}\n\n${requestText(sent, way)}`, io)
  }
  const fields = { dryRun: true, ...plant, store: store.name, token: found.source, socket: socketOf(store), proxy, request }
  return show(toJson(fields), io)
}

const tokenWords: Record<PreviewedAccess['source'], string> = {
  variable: 'from PLANTS_TOKEN',
  command: 'from the token command',
  file: 'which was saved',
  none: 'there is no token yet: set PLANTS_TOKEN, or save one with plants auth login',
}

function socketOf(store: Settings['store']): string | undefined {
  return takesToken(store) ? store.socketPath : undefined
}

async function describe(plant: NewPlant, settings: Settings, io: Io): Promise<string> {
  return describePlant(plant, await styleFor(settings.colors(io.stdout)))
}

function show(text: string, io: Io): Promise<void> {
  return writeAnswer(io, `${text}\n`, 'Nothing was created')
}
