import type { SettingsFile } from '../config/file.js'
import type { SettingSource } from '../config/resolve.js'
import type { Output } from '../platform/io.js'
import type { Address } from '../stores/address.js'
import type { OpenOptions } from '../stores/store.js'

/** What a run goes by, whatever store it uses. */
export interface Preferences {
  /** how answers look: sentences for people, JSON for programs */
  output: 'text' | 'json'
  /** how errors and warnings look; JSON only when it was asked for */
  errors: 'text' | 'json'
  /** milliseconds that a store may take */
  timeout: number
  /** milliseconds that others may take who are changing the settings; what is saved about stores says nothing about that */
  lockTimeout: number
  /** whether to tell what is done, and why */
  isVerbose: boolean
  /** whether somebody is there to answer questions */
  mayAsk(): boolean
  /** whether to colour what goes to this stream */
  colors(stream: Output): boolean
  /** prints a warning for a person */
  warn(text: string): Promise<void>
  /** every setting, and where its value came from */
  sources: SettingSource[]
  file: SettingsFile
}

/** What a run goes by: flag > environment > what is saved with the store > what is saved for the user > default. */
export interface Settings extends Preferences {
  store: Address
  /** the name that the store was saved under, where it was called by it */
  storeName: string | undefined
  /** what a command in a hint needs to mean this store, such as " --store ./garden.db"; empty when it does without */
  storeFlag: string
  /** whether it is the store of this run, for which PLANTS_TOKEN is, and not another one that is looked at */
  isOfRun: boolean
  allowHttp: boolean
  /** absolute path of a file of PEM certificates, and where it was named */
  caCert: { path: string; source: string } | undefined
  tokenCommand: string | undefined
  /** what it takes to open the store */
  storeOptions: OpenOptions
}
